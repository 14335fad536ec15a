"""Augment texts by rules: one augmenter per file, their registry and specification syntax, a cache and a preview."""
