"""Search with a learned evaluation: what turns a network's guess into a better policy, in play and in self-play."""
