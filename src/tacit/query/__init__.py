"""A question as our own nodes: what may be asked, and the refusal of what may not."""
