"""Sizes of systems and of runs, as data."""
