"""Label-free measures of a clustering; methods may use these.

One measure a file, imported from there: ``from coterie.metrics.internal.silhouette import silhouette``. Nothing is
re-exported here, because a function and the module that holds it would share one name.
"""
