"""Language models in a folder, run in this process: written text and probabilities."""
