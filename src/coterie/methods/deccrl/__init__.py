"""DECCRL: soft clustering with topics learned from the cluster centres."""
