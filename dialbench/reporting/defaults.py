"""What reports assume where neither the user nor a paper says anything."""

DEFAULT_ALPHA = 0.01
"""Level of significance."""
