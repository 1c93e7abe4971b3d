"""Rehearse a study: simulated people with known opinions answer a copy of it over HTTP."""
