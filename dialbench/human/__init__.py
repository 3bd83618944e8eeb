"""People as judges: judgements, their tally, their table."""
