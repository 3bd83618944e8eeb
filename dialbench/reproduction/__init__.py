"""Ours beside the printed numbers."""
