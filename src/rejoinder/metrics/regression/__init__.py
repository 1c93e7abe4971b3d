"""Estimators of the score of a reply, from references that people have scored."""
