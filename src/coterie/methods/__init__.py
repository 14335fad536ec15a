"""Methods: one file a paper, baselines beside them, all with the same estimator interface."""
