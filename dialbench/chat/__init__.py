"""Talking with trained systems, and letting them talk with themselves."""
