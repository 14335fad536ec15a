"""Clusters described for people: keywords, phrases, names, cards, counts by column."""
