"""Read, check, split, sample and augment texts: lists, data frames, Arrow tables and files become a ``Corpus``."""
