"""What the commands do, from Python: ``coterie.fit`` and ``coterie.Run``."""
