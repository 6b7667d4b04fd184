"""Pictures for notebooks: figures of matplotlib that show themselves, without pyplot."""

from __future__ import annotations

import base64
import io
import textwrap

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from earshot_simulations.reporting.drawing import STYLE, Picture
from earshot_simulations.reporting.words import unbroken

_WIDTH, _TITLE, _LETTERS = 6.4, 0.25, 74
"""Width of a figure and height of a line of its title in inches, and letters of such a line."""
_EMPTY = 2.0
_PAD = 18
"""Distance of the title in points, which leaves room for a legend."""
_LEAST = 12.0
"""Smallest size of a mark in a legend."""


class ShownFigure(Figure):
    """A figure that a notebook shows as it is, whichever backend there is."""

    def _repr_html_(self) -> str:
        file = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(file, format="png", dpi=110)
        return f'<img src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def drawn(picture: Picture | None, title: str, axes: Axes | None) -> Figure:
    """Draw a picture under a title, on axes or on a new figure.

    Args:
        picture: Picture; None where there is nothing to draw, so that the title stands alone.
        title: Title of any length, which is wrapped.
        axes: Axes that are drawn on; None for those of a new figure.

    Returns:
        The figure of the axes.
    """
    lines = textwrap.wrap(unbroken(title), _LETTERS)
    if axes is None:
        height = _EMPTY if picture is None else picture.height * 1.2
        size = _WIDTH, height + _TITLE * len(lines)
        axes = ShownFigure(figsize=size, layout="constrained").add_subplot()
    if picture is None:
        axes.set_axis_off()
    else:
        picture.on(axes)
        if axes.get_legend_handles_labels()[0] and axes.get_legend() is None:
            _explain(axes)
        if picture.remark:
            axes.set_xlabel(picture.remark, fontsize="small")
    axes.set_title("\n".join(lines), loc="left", fontsize="medium", pad=_PAD)
    figure = axes.get_figure(root=True)
    assert figure is not None  # noqa: S101 - axes that are drawn on have one
    return figure


def _explain(axes: Axes) -> None:
    """Put a legend between the picture and its title."""
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=4,
        fontsize="small",
        frameon=False,
        borderaxespad=0,
        handletextpad=0.2,
        columnspacing=1,
    )
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_alpha(1)
            handle.set_sizes(np.maximum(handle.get_sizes(), _LEAST))
