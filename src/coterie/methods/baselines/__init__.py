"""Baselines of the papers, with the same interface as all methods."""
