"""Checkpoints that others trained: read, converted, fine-tuned, answered with."""
