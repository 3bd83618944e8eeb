"""What it takes to make a paper's table again, as data."""
