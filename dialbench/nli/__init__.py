"""Natural-language inference: who judges whether one sentence follows from another."""
