"""Log readers, one file per format; packages add theirs as entry points ``rejoinder.readers``."""
