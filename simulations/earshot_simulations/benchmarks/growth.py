"""The growth of figures with the crowd: fitted over measured sizes, and extrapolated.

A fit over few sizes is uncertain; an extrapolation is labelled as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.secure_sum.parameters import choose
from earshot_simulations.sweeps.rows import Figures

_HOUR = 3600.0


@dataclass(frozen=True)
class Growth:
    """A figure as a power of the number of phones.

    Attributes:
        slope: Exponent of the power: 0 for a constant, 1 for growth in proportion to the crowd.
        wide: Half-width of the exponent's 95 % interval by Student's t over the residuals of the
            line; None with two sizes, through which a line always passes.
        ratio: Figure at the largest size divided by the one at the smallest.
        sizes: Number of sizes.
    """

    slope: float
    wide: float | None
    ratio: float
    sizes: int

    def __str__(self) -> str:
        wide = "" if self.wide is None else f" ± {self.wide:.3f}"
        return f"n^({self.slope:.3f}{wide}), ×{self.ratio:.2f}"


def growth(phones: Sequence[float], figures: Sequence[float]) -> Growth:
    """Fit the least-squares line of log(figure) over log(phones).

    Raises:
        InvalidInputError: There are fewer than two different sizes, or a number is not above 0.
    """
    sizes, values = np.asarray(phones, np.float64), np.asarray(figures, np.float64)
    if len(np.unique(sizes)) < 2 or np.any(sizes <= 0) or np.any(values <= 0):
        raise InvalidInputError(
            f"phones={list(phones)}, figures={list(figures)}: a slope needs two sizes or more, and "
            "figures above 0"
        )
    x, y = np.log(sizes), np.log(values)
    apart = x - x.mean()
    spread = float(apart @ apart)
    slope = float(apart @ y) / spread
    free = len(x) - 2
    wide = None
    if free:
        from scipy import stats

        residuals = y - y.mean() - slope * apart
        error = np.sqrt(float(residuals @ residuals) / free / spread)
        wide = float(stats.t.ppf(0.975, free) * error)
    ratio = float(values[np.argmax(sizes)] / values[np.argmin(sizes)])
    return Growth(slope, wide, ratio, len(x))


@dataclass(frozen=True)
class Extrapolation:
    """Estimated cost of a phase: a phone's grows with k, the server's also with the crowd.

    Attributes:
        phones: Phones of the estimated phase.
        basis: Phones of the measured phase.
        neighbours: Neighbours of a phone (k).
        phones_hours: CPU time of all phones, in core-hours.
        server_hours: CPU time of the server, in core-hours, all in one process.
        gigabytes_up: Data from all phones to the server, in 10⁹ bytes.
        gigabytes_down: Data from the server to all phones, in 10⁹ bytes.
        efficiency: Measured share of the phones' processes' time that was phones' CPU time.
    """

    phones: int
    basis: int
    neighbours: int
    phones_hours: float
    server_hours: float
    gigabytes_up: float
    gigabytes_down: float
    efficiency: float

    def hours(self, cores: int) -> float:
        """Return elapsed hours with this many cores for phones, at the measured efficiency.

        The server's work follows the phones', so it is added.
        """
        return self.phones_hours / (cores * self.efficiency) + self.server_hours


def extrapolated(measured: Figures, phones: int) -> Extrapolation:
    """Extrapolate from one row of `earshot bench phase` with its cryptography.

    A phone's figures are multiplied by the ratio of the two k, an upper bound: work that does not
    depend on its neighbours does not grow. The server's CPU is multiplied by the ratio of the
    phones, and by that of k.
    """

    def value(name: str) -> float:
        return float(measured[name] or 0)

    basis = int(value("phones"))
    degree = choose(phones, (1,), 1, value("dropout"), value("corrupted")).degree
    by_k = degree / value("neighbours")
    grown = phones / basis * by_k
    busy, playing = value("phones_cpu_seconds"), value("seconds") - value("server_cpu_seconds")
    return Extrapolation(
        phones,
        basis,
        degree,
        phones_hours=value("phone_cpu_ms") / 1e3 * phones * by_k / _HOUR,
        server_hours=value("server_cpu_seconds") * grown / _HOUR,
        gigabytes_up=value("phone_bytes_up") * phones * by_k / 1e9,
        gigabytes_down=value("phone_bytes_down") * phones * by_k / 1e9,
        efficiency=busy / max(busy, playing * value("processes")),
    )


def extrapolation_table(
    rows: Sequence[Figures], phones: int, cores: Sequence[int] = (2, 16, 64)
) -> str:
    """Format one line for each row in Markdown, under a header that states the extrapolation."""
    heads = ["extrapolated, not measured", "from", "k", "phones' CPU", "server's CPU", "up", "down"]
    heads += [f"{count} cores" for count in cores]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for each in rows:
        found = extrapolated(each, phones)
        cells = [
            f"{each['discovery']}, {found.phones:,} phones",
            f"{found.basis:,}",
            str(found.neighbours),
            f"{found.phones_hours:.1f} core-h",
            f"{found.server_hours:.1f} core-h",
            f"{found.gigabytes_up:.0f} GB",
            f"{found.gigabytes_down:.0f} GB",
            *(f"{found.hours(count):.1f} h" for count in cores),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
