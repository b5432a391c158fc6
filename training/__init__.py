"""Training of agents by self-play: configuration, PPO, checkpoints, evaluation and the command line."""
