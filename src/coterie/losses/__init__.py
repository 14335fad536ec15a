"""Losses that more than one method uses: tensors in, a scalar out, one per file."""
