"""Compiled loops on integer arrays; the only modules that import numba."""
