"""The web pages of a study: people answer tasks, the researcher watches the results."""
