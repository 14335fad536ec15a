"""Naive-loop float64 oracles, written from the papers' equations, that the fast losses are held to."""
