"""Language models as judges: rubrics, questions, and how answers are read."""
