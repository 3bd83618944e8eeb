"""One table in every format."""
