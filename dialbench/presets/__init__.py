"""How much to spend: quick, small or paper."""
