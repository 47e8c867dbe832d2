"""Check a claim: exactly from a law, statistically from samples, and by playing the game."""
