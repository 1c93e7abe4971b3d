"""The verbs of the package: one module each, with the function and its result."""
