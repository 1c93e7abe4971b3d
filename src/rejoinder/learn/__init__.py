"""What is learnt: one training loop, its checkpoints, and the models that use them."""
