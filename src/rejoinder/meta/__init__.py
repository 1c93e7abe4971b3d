"""How far a metric can be trusted: correlation, significance, agreement."""

from rejoinder.verb import also_a_verb

also_a_verb(__name__)
