"""The command line: one module per verb. Heavy imports are inside the functions."""
