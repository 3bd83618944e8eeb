"""Plots of tables, results and responses."""
