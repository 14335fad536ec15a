"""What needs a language-model head: predicting masked words, and the augmenters built on language models."""
