"""Slow, independent reference implementations of the four games, written from the rules alone."""
