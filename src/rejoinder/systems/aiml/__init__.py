"""An interpreter of AIML 1.0 and 2.0 rules: parsing, graph of patterns, templates, bot."""
