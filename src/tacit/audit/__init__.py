"""Check a claim: exactly from a distribution, statistically from samples, and by playing the game."""
