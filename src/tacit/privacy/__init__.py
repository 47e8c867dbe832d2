"""The vocabulary: who is protected, how much one unit can change, what was done, what it promises."""
