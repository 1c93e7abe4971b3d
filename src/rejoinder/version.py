"""The version of the package; it is part of every metric's signature."""

__version__ = "0.2.0"
