"""Clustering methods: one module per paper, and baselines, all with the same estimator interface."""
