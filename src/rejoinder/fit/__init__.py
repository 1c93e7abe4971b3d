"""``rejoinder fit``: from logs to an evaluator."""

from rejoinder.verb import also_a_verb

also_a_verb(__name__)
