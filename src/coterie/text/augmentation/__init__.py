"""Rule-based views of a text, one augmenter a file, seeded."""
