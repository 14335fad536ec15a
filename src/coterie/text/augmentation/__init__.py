"""Other wordings of a text by rule, one augmenter a file, seeded; their table, their grammar and their cache."""
