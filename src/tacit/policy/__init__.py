"""What the owner declares: who is protected, what may be named, and how much may be spent."""
