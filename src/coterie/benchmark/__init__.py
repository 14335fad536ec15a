"""The benchmark: what is run, how it is scored, what is printed."""
