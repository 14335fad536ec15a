"""Plots of a run, as data and as files."""
