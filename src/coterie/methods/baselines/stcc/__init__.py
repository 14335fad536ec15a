"""STCC: a convolutional network that learns binary codes of texts."""
