"""The networks of the papers, and cheaper ones over frozen sentence vectors."""
