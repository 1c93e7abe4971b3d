"""Training of the networks of an evaluator: one training loop, its checkpoints, and the models."""

import os

# Threads of torch wait for each other thousands of times a second in a recurrent network. By
# default they spin, and on a busy machine training then takes 30 times as long. This must be set
# before torch is loaded; a value that the user has set is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
