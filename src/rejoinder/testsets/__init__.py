"""Judged sets of replies, read from a folder of the user's and turned into items.

The material belongs to others, under their licences, so none of it is in this package: the
environment variable ``REJOINDER_DATA`` names the folder. What is offered, where it comes
from and what may be done with it is in :mod:`rejoinder.testsets.catalogue`.

    from rejoinder.testsets import load
    items = list(load("grade-convai2"))
    items = list(load("dailydialog-multiref", references="multi"))
"""

from rejoinder.testsets.catalogue import CATALOGUE, Dataset, find, load, names
from rejoinder.testsets.source import VARIABLE, File

__all__ = ["CATALOGUE", "VARIABLE", "Dataset", "File", "find", "load", "names"]
