"""How sure an assignment is: the share of texts of this confidence that are where they belong."""

from coterie.runs.calibration.calibration import CALIBRATION_FILE, Calibration, calibrate
from coterie.runs.calibration.of_model import calibrate_model

__all__ = ["CALIBRATION_FILE", "Calibration", "calibrate", "calibrate_model"]
