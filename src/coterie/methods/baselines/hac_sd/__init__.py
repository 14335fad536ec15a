"""HAC-SD: average linkage of the largest similarities, then iterative classification."""
