"""Trackers of a run: TensorBoard and Weights & Biases, each told from a thread of its own."""

from hackmatrix.runs.trackers.trackers import Trackers
from hackmatrix.runs.trackers.wandb_download import download_run
from hackmatrix.runs.trackers.weights_and_biases import WandbSettings

__all__ = ["Trackers", "WandbSettings", "download_run"]
