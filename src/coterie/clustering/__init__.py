"""Partitions of vectors: k-means, spherical k-means, linkage, and soft assignment to centres."""
