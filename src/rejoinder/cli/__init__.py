"""The command line: one file a verb. Heavy imports stand inside the verbs."""
