"""Measures of a clustering that need no labels; methods may use them.

Import each from its module: ``from coterie.metrics.internal.silhouette import silhouette``. Nothing is re-exported
here, because a function and its module would share one name.
"""
