"""Where conversations come from, one file a corpus."""
