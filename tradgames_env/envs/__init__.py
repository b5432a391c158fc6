"""Environments: one PettingZoo AEC class, a Gymnasium view against an opponent, and many games as arrays."""
