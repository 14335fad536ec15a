"""Calibrated confidence: the probability that an assignment is right."""

from coterie.runs.calibration.calibration import CALIBRATION_FILE, Calibration, calibrate
from coterie.runs.calibration.of_model import calibrate_model

__all__ = ["CALIBRATION_FILE", "Calibration", "calibrate", "calibrate_model"]
