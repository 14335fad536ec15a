"""From texts to vectors: transformers, and the word-count spaces they are compared with."""
