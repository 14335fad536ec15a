"""AECL: contrastive learning guided by attention between texts."""
