"""A run folder: what ``coterie fit`` writes, and everything that reads or changes it."""
