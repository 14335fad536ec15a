"""The edits that people make to the clusters of a run: stored, replayed, applied to new texts."""

from coterie.runs.edits.kinds import Edit
from coterie.runs.edits.log import EditLog
from coterie.runs.edits.replay import EditedClusters, apply_to_new, replay

__all__ = ["Edit", "EditLog", "EditedClusters", "apply_to_new", "replay"]
