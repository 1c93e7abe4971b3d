"""From raw dialogue logs to clean pairs of utterance and response."""
