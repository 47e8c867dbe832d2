"""One file for each aggregate: what it measures, its sensitivity, its estimate, its interval, its words.

To add one, write its file and name it in `registry.py`.
"""
