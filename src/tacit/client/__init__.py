"""Talk to a served curator, with the methods of a local analyst."""
