"""Charts: one model of estimates with intervals, and a renderer each for terminals, notebooks, pages and files."""
