"""Training of agents by self-play: configuration, PPO, checkpoints, evaluation and the command line."""

import os

# torch's threads otherwise spin while they wait for each other. On a machine with other work that made training a
# hundred times slower; it is read when torch is first imported, and whoever has set it keeps what they set.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
