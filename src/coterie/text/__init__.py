"""Reading and checking texts: lists, data frames, Arrow tables and files become a ``Corpus``."""
