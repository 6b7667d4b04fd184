"""What every command asks for that shapes a discovery by secure sums."""

from __future__ import annotations

from typing import Annotated

import typer

Cells = Annotated[
    int | None,
    typer.Option(
        help="Start centroids, of those that the encoder has; by default 20, or 40 where crowd and "
        "ε bear them."
    ),
]
MostCells = Annotated[
    int | None,
    typer.Option(
        help="To how many cells (k) these may grow where sound is unlike the encoder's; by default "
        "40."
    ),
]
Sums = Annotated[
    int, typer.Option(help="How often cells are summed before they are named (T), 0 to 3.")
]
LabelShare = Annotated[
    float, typer.Option(help="Share of ε (in ρ) that the names of cells get: above 0, below 1.")
]
