"""What Mühl (2021) prints in its Tables 6.4 to 6.7, and in section 6.2.1."""

from __future__ import annotations

from collections.abc import Mapping

from earshot_studies.muehl.plan import Variant

HIGHER = (1.5, 2.0, 3.0, 5.0)
"""ε of the higher budget; that of the lower is 1."""

MORE = "> 2000"

Cells = Mapping[tuple[Variant, float, int], float | str]
"""By variant, higher budget and quarters of owners who have it."""


def _cells(table: str) -> Cells:
    """Of rows of cells u/v/w, a row a budget and a column a share."""
    variants = (Variant.UPSAMPLING, Variant.VANISHING, Variant.WEIGHTING)
    found: dict[tuple[Variant, float, int], float | str] = {}
    for higher, line in zip(HIGHER, table.strip().splitlines(), strict=True):
        for quarters, cell in enumerate(line.split(), start=1):
            for variant, number in zip(variants, cell.split("/"), strict=True):
                found[variant, higher, quarters] = MORE if number == ">" else float(number)
    return {key: number for key, number in found.items() if number == number}


LABELS: Mapping[str, Cells] = {
    "mnist": _cells("""
        271/52/267 338/176/340 412/320/408
        335/36/329 477/256/481 655/520/655
        462/37/459 820/488/819 1258/1068/1264
        775/65/758 1683/1184/1682 >/>/>"""),
    "adult": _cells("""
        239/54/242 296/160/299 359/280/360
        292/39/294 419/229/418 561/456/564
        404/34/408 706/414/706 1080/919/1079
        668/58/671 1426/993/1427 >/>/>"""),
}
"""Tables 6.4 and 6.5."""

ACCURACY: Mapping[str, Cells] = {
    "mnist": _cells("""
        90.64/73.51/90.92 91.41/88.67/91.35 92.75/92.45/92.91
        91.61/67.09/91.77 93.01/90.83/92.83 93.4/92.47/92.81
        92.39/69.13/92.41 93.75/92.49/93.81 94.47/94.33/94.52
        93.6/79.79/93.18 94.78/94.48/94.99 nan/nan/nan"""),
    "adult": _cells("""
        80.37/78.98/81.45 81.57/80.91/81.61 81.91/81.63/81.91
        81.69/77.98/81.61 81.85/81.41/81.85 81.84/81.94/81.99
        81.85/78.01/82.15 82.0/81.94/82.01 82.09/82.23/82.16
        82.11/78.73/82.01 82.24/82.01/82.17 nan/nan/nan"""),
}
"""Tables 6.6 and 6.7, in %."""

BASE_LABELS = {"mnist": 221, "adult": 195}
BASE_ACCURACY = {"mnist": 90.15, "adult": 80.63}
TEACHERS = {"mnist": 90.2, "adult": 81.0}
"""Mean accuracy of teachers in %; so are the two below."""
REJECTED = {"mnist": 43.0, "adult": 64.3}
RIGHT = {"mnist": 97.7, "adult": 86.3}


def printed(cells: Cells, base: float, variant: Variant, higher: float, quarters: int) -> str:
    """What stands in a cell, as it is printed; nothing if it is empty."""
    number = base if variant is Variant.EQUAL else cells.get((variant, higher, quarters), "")
    return f"{number:g}" if isinstance(number, float | int) else number
