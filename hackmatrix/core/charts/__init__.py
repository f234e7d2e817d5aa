"""Plots as SVG files that stand alone: panels of lines, points, bars, intervals and fields."""

from hackmatrix.core.charts.marks import Bars, Intervals, Line, Mark, Points, ScalarField
from hackmatrix.core.charts.picture import Panel, Picture, picture

__all__ = [
    "Bars",
    "Intervals",
    "Line",
    "Mark",
    "Panel",
    "Picture",
    "Points",
    "ScalarField",
    "picture",
]
