"""Tests of reports may ask for a real browser."""

from __future__ import annotations

from browser import browser

__all__ = ["browser"]
