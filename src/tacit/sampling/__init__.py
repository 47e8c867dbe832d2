"""The only place where randomness is drawn: cryptographic bits, and exact distributions made of them."""
