"""Meta-evaluation of metrics: correlation with people, significance, inter-annotator agreement."""
