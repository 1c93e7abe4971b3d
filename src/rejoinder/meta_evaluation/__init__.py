"""How far a metric can be trusted: correlation, significance, agreement."""
