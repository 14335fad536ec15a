"""Reports and plots of a saved run."""
