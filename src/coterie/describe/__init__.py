"""Describe clusters for people: keywords, phrases, names, cards, counts by column, changes between partitions."""
