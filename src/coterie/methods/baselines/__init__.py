"""What the papers compare with, on the same interface."""
