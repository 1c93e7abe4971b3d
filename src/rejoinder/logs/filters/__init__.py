"""The parts of the cleaning filters of ``logs/clean.py``.

``rewrite`` has the regular expressions, ``characters`` the tables of code points, ``columns`` the
conversion between Arrow and compiled loops; ``bots`` and ``language`` decide which posts are
removed.
"""
