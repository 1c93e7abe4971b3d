"""Recipes: a whole experiment as one TOML file of Rejoinder's own command lines."""
