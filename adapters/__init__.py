"""The systems under test, one file each, named as their papers name them."""
