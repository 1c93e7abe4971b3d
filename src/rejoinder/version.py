"""The one place that knows the version; it is part of every metric's signature."""

__version__ = "0.1.0"
