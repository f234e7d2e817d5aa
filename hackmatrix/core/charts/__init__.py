"""Plots as SVG files that stand alone: panels of lines, points, bars, intervals and fields."""

from hackmatrix.core.charts.marks import Bars, Field, Intervals, Line, Mark, Points
from hackmatrix.core.charts.picture import Panel, Picture, picture

__all__ = ["Bars", "Field", "Intervals", "Line", "Mark", "Panel", "Picture", "Points", "picture"]
