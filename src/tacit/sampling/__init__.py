"""The only place where randomness is drawn: cryptographic bits, and exact laws made of them."""
