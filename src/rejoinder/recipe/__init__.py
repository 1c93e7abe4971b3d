"""Recipes: whole experiments as TOML files of command lines."""
