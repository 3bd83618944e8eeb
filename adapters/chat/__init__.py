"""Chat endpoints: a client, and answers kept as they come."""
