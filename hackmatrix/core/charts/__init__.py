"""Plots as SVG files that stand alone: panels with axes, lines with bands, points, bars, fields."""

from hackmatrix.core.charts.marks import Bars, Field, Line, Mark, Points
from hackmatrix.core.charts.picture import Panel, picture

__all__ = ["Bars", "Field", "Line", "Mark", "Panel", "Points", "picture"]
