"""Encode texts as vectors: transformers, and the bag-of-words, TF-IDF and SIF encoders they are compared with."""
