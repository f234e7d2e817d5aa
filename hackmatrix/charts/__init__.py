"""Plots as SVG files that stand alone: panels with axes, lines with bands, points and bars."""

from hackmatrix.charts.marks import Bars, Line, Points
from hackmatrix.charts.picture import Panel, picture

__all__ = ["Bars", "Line", "Panel", "Points", "picture"]
