"""Experiment trackers: TensorBoard and Weights & Biases, each in its own thread."""

from hackmatrix.runs.trackers.fan_out import Trackers
from hackmatrix.runs.trackers.tracker import TrackedRun
from hackmatrix.runs.trackers.weights_and_biases import download_run

__all__ = ["TrackedRun", "Trackers", "download_run"]
