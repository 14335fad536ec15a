"""The contract: what every registered method must do, checked on a tiny encoder."""
