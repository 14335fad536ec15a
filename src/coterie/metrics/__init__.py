"""Measures of a clustering: internal ones need no labels, external ones compare with true labels."""
