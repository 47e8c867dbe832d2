"""The console: web pages of a served curator, written by the server; asking works without a script."""
