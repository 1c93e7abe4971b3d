"""What is learnt: one training loop, its checkpoints, and the models that use them."""

import os

# torch's threads wait for each other thousands of times a second in a recurrent network. By
# default they do so at full speed, and on a machine that is busy otherwise, training takes 30
# times as long. Must be said before torch is loaded; somebody who has said otherwise is right.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
