"""Drawing of a report's pictures, as SVG that follows the reader's light or dark theme."""

from __future__ import annotations

import base64
import io
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from markupsafe import Markup

from earshot_simulations.reporting.words import printable

PALETTE = (
    "#0096ff",
    "#d2b400",
    "#a50f78",
    "#5a5a0f",
    "#f08796",
    "#5a4bd2",
    "#c34b69",
    "#3cc3ff",
    "#b48700",
    "#8778b4",
)
"""Ten colours that stay apart under the three colour-vision deficiencies, on white and on black."""
INK, MUTED, LINE, CARD = "#1b1e23", "#8b919b", "#dfe2e7", "#fdfdfe"
"""Colours of the light theme; `_themed` replaces them by CSS variables with a dark variant."""
WIDTH = 4.6
"""Width in inches; text stays legible when a phone scales the picture down."""
MOST_ROWS = 40
"""Most rows of a chart, and names in its description."""

_THEME = (
    "<style>"
    f":root{{--ink:{INK};--muted:{MUTED};--line:{LINE};--card:{CARD}}}"
    "@media (prefers-color-scheme:dark){"
    ":root{--ink:#e6e8ec;--muted:#7c828d;--line:#33383f;--card:#181b20}}"
    "</style>"
)
_VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", LINE: "var(--line)", CARD: "var(--card)"}
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "xtick.color", "ytick.color"), LINE),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "font.size": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "earshot",
    # A label such as "$5" is a label, not a formula.
    "text.parse_math": False,
}
"""Style of every picture."""


@dataclass(frozen=True)
class Picture:
    """A picture, drawn when it is asked for, and a description of it in words.

    Attributes:
        draw: Function that draws on axes.
        height: Height in inches; pictures of a page are `WIDTH` wide.
        alt: Description for readers who cannot see the picture.
        remark: Note on parts that the picture leaves out; empty if none.
        square: Whether both axes have one scale.
    """

    draw: Callable[[Axes], None]
    height: float
    alt: str
    remark: str = ""
    square: bool = False

    def on(self, axes: Axes) -> None:
        """Draw on axes, which are the caller's."""
        import matplotlib

        with matplotlib.rc_context(STYLE):
            if self.square:
                axes.set_aspect("equal")
            self.draw(axes)

    @cached_property
    def svg(self) -> str:
        """Markup without outside references, which follows the reader's theme."""
        return rendered(self)

    @property
    def source(self) -> Markup:
        """Data URI for an `img`, whose styles and ids cannot clash with those of the page."""
        encoded = base64.b64encode(self.svg.encode()).decode()
        # S704: base64 needs no escaping, which is slow for long strings.
        return Markup(f"data:image/svg+xml;base64,{encoded}")  # noqa: S704


def picture(
    draw: Callable[[Axes], None], height: float, alt: str, *remarks: str, square: bool = False
) -> Picture:
    """Return the picture that `draw` draws, and join the remarks that are not empty."""
    return Picture(draw, height, alt, " ".join(filter(None, remarks)), square)


def rendered(picture: Picture) -> str:
    """Draw a picture as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # Text stays text: the reader's fonts draw it, not the font that measures it here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH, picture.height), layout="constrained")
        picture.on(figure.add_subplot())
        file = io.StringIO()
        nobody = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, dpi=160, metadata=nobody)
    return _themed(file.getvalue())


def _themed(svg: str) -> str:
    """Return the bare `svg` element, with colours and fonts of the reader's theme."""
    svg = svg[svg.index("<svg") :]
    opening = svg.index(">") + 1

    def restyle(style: re.Match[str]) -> str:
        text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", style[0])
        return re.sub("#[0-9a-f]{6}", lambda colour: _VARIABLES.get(colour[0], colour[0]), text)

    return svg[:opening] + _THEME + re.sub(r'style="[^"]*"', restyle, svg[opening:])


def short(text: str, most: int = 22) -> str:
    """Cut a text to at most this many characters."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def in_two_lines(text: str, most: int = 22) -> str:
    """Break a text into at most two lines of this many characters; cut only what is longer."""
    first, *others = textwrap.wrap(printable(text), most) or [""]
    return "\n".join([first, short(" ".join(others), most)] if others else [first])
