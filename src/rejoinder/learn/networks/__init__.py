"""The networks of the papers, and their cheap forms over frozen sentence vectors."""
