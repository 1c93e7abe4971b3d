"""Which of two replies is better: from people's answers to scores, at a fraction of the cost."""
