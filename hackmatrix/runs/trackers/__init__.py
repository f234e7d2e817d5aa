"""Trackers of a run: TensorBoard and Weights & Biases, each told from a thread of its own."""

from hackmatrix.runs.trackers.tracker import TrackedRun
from hackmatrix.runs.trackers.trackers import Trackers
from hackmatrix.runs.trackers.wandb_download import download_run

__all__ = ["TrackedRun", "Trackers", "download_run"]
