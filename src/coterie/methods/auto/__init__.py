"""Coterie's own method, the default."""
