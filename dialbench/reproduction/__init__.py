"""Papers' tables made again from finished runs."""
