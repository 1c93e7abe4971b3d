"""Dialogue systems that papers compare with, behind one ``reply``."""
