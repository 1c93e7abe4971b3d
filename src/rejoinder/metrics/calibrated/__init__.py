"""Scores on the scale of people, by what ``rejoinder calibrate`` has learnt from ratings."""
