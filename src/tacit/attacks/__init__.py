"""Attacks on releases, over anything that answers questions."""
