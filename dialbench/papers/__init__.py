"""The numbers that the papers printed, as data."""
