"""Checkpoints of the transformers library: read, fine-tuned, answered with."""
