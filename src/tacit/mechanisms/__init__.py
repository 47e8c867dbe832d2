"""One file a mechanism: its law, its loss, its release, its error."""
