"""Plots of a run: their data, and files that matplotlib and Plotly make of it."""
