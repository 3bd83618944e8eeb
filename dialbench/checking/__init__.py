"""Whether the numbers of a run are still those of a committed baseline, and if not, why not."""
