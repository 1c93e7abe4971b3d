"""Pairwise comparisons: from answers to "which of two replies is better?" to scores of replies."""
