"""Studies with people: they rate, write or compare replies in a browser."""
