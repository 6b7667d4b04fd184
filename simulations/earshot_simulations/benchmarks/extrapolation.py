"""What a crowd that nobody measured would take, from the largest that somebody did; labelled so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earshot_protocol.secure_sum.parameters import choose
from earshot_simulations.sweeps.rows import Figures

_HOUR = 3600.0


@dataclass(frozen=True)
class Extrapolation:
    """A phase of so many phones, if each pays as k grows and the server as their number does.

    Attributes:
        phones: how many.
        basis: of the phase that was measured.
        neighbours: k.
        phones_hours: CPU of all phones, core-hours.
        server_hours: of the server, which one process does alone.
        gigabytes_up: from all phones, 10⁹ bytes.
        gigabytes_down: to them.
        efficiency: of the processes that played phones: the share of their time that was phones'
            CPU, as measured.
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
        """By the clock, with so many cores that play phones, at the efficiency that was measured.

        The server's part waits for the phones', so it is added.
        """
        return self.phones_hours / (cores * self.efficiency) + self.server_hours


def extrapolated(measured: Figures, phones: int) -> Extrapolation:
    """From one row of `earshot bench phase` with its cryptography.

    A phone's figures are multiplied by the ratio of the two k, which is the most that k explains:
    what a phone does beside its neighbours' part does not grow. The server's CPU is multiplied by
    the ratio of the phones, and by that of k.
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


def table(rows: Sequence[Figures], phones: int, cores: Sequence[int] = (2, 16, 64)) -> str:
    """One line for each row, in Markdown; the head says that nothing of it was measured."""
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
