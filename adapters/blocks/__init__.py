"""Layers that several systems share."""
