"""What people changed about a run's clusters, and how it holds for new texts."""

from coterie.runs.edits.kinds import Edit
from coterie.runs.edits.log import EditLog, read_edits
from coterie.runs.edits.replay import EditedClusters, apply_to_new, replay

__all__ = ["Edit", "EditLog", "EditedClusters", "apply_to_new", "read_edits", "replay"]
