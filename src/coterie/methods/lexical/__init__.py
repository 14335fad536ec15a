"""Clusters by words alone: a variational auto-encoder of TF-IDF rows, contrasted with neighbours."""
