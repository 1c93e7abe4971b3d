"""Language models in a folder, run in this process."""
