"""Search that is told what a position is worth: improvers of play for self-play and for agents."""
