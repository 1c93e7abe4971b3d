"""Readers of logs, one small file a format; a package adds its own under ``rejoinder.readers``."""
