"""Load published test sets of rated replies as items.

The data has its own licences and is not part of this package: the environment variable
``REJOINDER_DATA`` names the folder with the files. Sources, licences and digests of all sets are in
:mod:`rejoinder.testsets.catalogue`.

    from rejoinder.testsets import load
    items = list(load("grade-convai2"))
    items = list(load("dailydialog-multiref", references="multi"))
"""

from rejoinder.testsets.catalogue import CATALOGUE, Dataset, find, load, names
from rejoinder.testsets.source import VARIABLE, File

__all__ = ["CATALOGUE", "VARIABLE", "Dataset", "File", "find", "load", "names"]
