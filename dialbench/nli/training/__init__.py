"""How the embedded judge was made: taught, calibrated and examined."""
