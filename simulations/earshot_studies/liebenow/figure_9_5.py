"""Figure 9.5 of the thesis: seconds of every operation and the server's traffic, by phones."""

from __future__ import annotations

import functools
import os
import platform
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from earshot_client import selection
from earshot_client.private_runs import clustering_by
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.geometry import Geometry, counts
from earshot_protocol.phases import discovery, learning
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.traffic import traffic as sum_traffic
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_server.phases.forecast import release_bytes
from earshot_simulations.engine.course import DISCOVER
from earshot_simulations.phases.settings import BLOBS, Settings, SummationChoice
from earshot_simulations.phases.simulation import open_population, simulate
from earshot_simulations.reporting.panels import panels_for, plain_logarithmic
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Arm, Measure, measured
from earshot_studies.kit.outcome import Reproduction, Row
from earshot_studies.liebenow.comparison import draw_legend
from earshot_studies.liebenow.contenders import (
    LOCAL,
    PRINTED,
    SECURE_SUM,
    ComparedEncoder,
    ReproductionSetup,
)

CLUSTERING, SELECTION, DISCOVERY = "local clustering", "local top centroids", "global clustering"
CENTROIDS, LABELS = "centroid vote", "label vote"
CELLS, CELL_LABELS = "sum of cells", "sum of labels"
PHONE, SERVER, UP = "phone seconds", "server seconds", "bytes up"
"""Names of the costs of an operation, for all phones together."""
FOUND = "global centroids"

_TIMED_PHONES = 20
_PARTS = {
    learning.LOCAL_CENTROIDS: SELECTION,
    DISCOVER: DISCOVERY,
    learning.CENTROID_VOTE: CENTROIDS,
    learning.LABEL_VOTE: LABELS,
    discovery.LABELS: CELL_LABELS,
}


class Took(NamedTuple):
    """The costs of one operation, for all phones together."""

    phone_seconds: float
    server_seconds: float
    bytes_up: float


def timed(settings: Settings) -> Figures:
    """Time a whole phase with its real cryptography.

    Seconds are CPU time of all phones together, as if they ran one after the other on one core.
    Clustering and selection of a phone are timed separately, on some of the phones.

    Raises:
        KeyboardInterrupt: The phase was interrupted.
    """
    _load()
    run = simulate(settings)
    if run.interrupted is not None:
        raise KeyboardInterrupt(run.interrupted)
    figures: dict[str, float | int | str | None] = {}

    def add(operation: str, took: Took) -> None:
        for name, value in zip((PHONE, SERVER, UP), took, strict=True):
            key = f"{operation}: {name}"
            figures[key] = float(figures.get(key) or 0.0) + value

    for step in run.steps:
        operation = _PARTS.get(step.step.partition(":")[0], CELLS)
        phones = 0.0 if operation == SELECTION else step.phone_cpu_seconds
        add(operation, Took(phones, step.server_cpu_seconds, step.bytes_up))
    if learning.LOCAL_CENTROIDS in {step.step for step in run.steps}:
        for operation, seconds in _on_phones(settings).items():
            add(operation, Took(seconds * settings.phones, 0.0, 0))
        places = run.found.global_centroids
        figures[FOUND] = 0 if places is None else len(places)
    return figures


@functools.cache
def _load() -> None:
    """Discover once, so that no phase's time includes imports and compilation."""
    points = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    with suppress(NothingFoundError):
        Optics().discover(points, Geometry.EUCLIDEAN)


def operations(figures: Figures) -> dict[str, Took]:
    """Return the costs by operation, in the order of a phase."""
    order = (CLUSTERING, SELECTION, DISCOVERY, CENTROIDS, LABELS, CELLS, CELL_LABELS)
    return {
        name: Took(*(float(figures[f"{name}: {part}"] or 0) for part in (PHONE, SERVER, UP)))
        for name in order
        if f"{name}: {PHONE}" in figures
    }


def computed_bytes(settings: Settings, phones: int, found: int) -> dict[str, float]:
    """Compute the bytes to the server by operation, without simulating the crowd.

    Args:
        settings: Settings of a phase.
        phones: Number of phones (n).
        found: Number of global centroids that are voted on, on the local route.
    """
    with closing(open_population(replace(settings, phones=3))) as population:
        parameters = replace(settings, phones=phones).parameters(population)
    bytes_up: dict[str, float] = {}
    if isinstance(parameters, PhaseParameters):
        bytes_up[SELECTION] = phones * release_bytes(parameters)
    for part in parameters.plan().parts:
        if isinstance(part, SecureSum):
            operation = _PARTS.get(part.name, CELLS)
            agreed = parameters.sum_parameters(part, _shape(parameters, part, found))
            of_one = sum_traffic(agreed).sent
            bytes_up[operation] = bytes_up.get(operation, 0.0) + phones * of_one
    return bytes_up


def _shape(parameters: Parameters, part: SecureSum, found: int) -> tuple[int, ...]:
    """Return the shape of a phone's input."""
    labels = len(parameters.labels)
    if isinstance(parameters, PhaseParameters):
        kept = min(parameters.top_global_centroids, found)
        return (found,) if part.name == learning.CENTROID_VOTE else (kept, labels)
    known: Any = parameters
    rows = known.rows * known.kinds if part.name == discovery.LABELS else known.most_cells
    return rows, known.dimensions


def _on_phones(settings: Settings) -> Mapping[str, float]:
    """Time one phone's clustering and its selection, in CPU seconds, averaged over some phones."""
    seconds = {CLUSTERING: 0.0, SELECTION: 0.0}
    with open_population(settings) as population:
        parameters: Any = settings.parameters(population)
        mechanisms: dict[str, Any] = dict(parameters.plan().mechanisms)
        clustering = clustering_by(mechanisms[learning.CLUSTER], parameters.local_centroids)
        clustering.cluster(np.empty((0, population.dimensions)))  # start centroids are kept
        some = min(_TIMED_PHONES, settings.phones)
        for phone in range(some):
            points = population.recordings(phone).points
            began = time.process_time()
            centroids = clustering.cluster(points)
            clustered = time.process_time()
            numbers = counts(points, centroids, parameters.geometry)
            selection.top_centroids(numbers, mechanisms[learning.SELECT])
            seconds[CLUSTERING] += (clustered - began) / some
            seconds[SELECTION] += (time.process_time() - clustered) / some
    return seconds


TIMED = Measure("timed", timed)


NAME_A, NAME_B = "liebenow-9.5a", "liebenow-9.5b"
PHONES = "phones"
FEW, MANY = (100, 200, 400), (100, 300, 1000, 3000, 10_000)
THESIS, COMPUTED, MEASURED = "the thesis's formula", "computed", "measured"
_CROWDS = (100, 1000, 10_000, 100_000, 1_000_000)
_THESIS_BYTES = 8
_ROUTES = (LOCAL, SECURE_SUM)
_COLOURS = {
    CLUSTERING: "#4c78a8", SELECTION: "#72b7b2", DISCOVERY: "#b279a2", CENTROIDS: "#f58518",
    LABELS: "#e45756", CELLS: "#54a24b", CELL_LABELS: "#9d755d",
}  # fmt: skip


@dataclass(frozen=True)
class _Timed:
    """One route at one size, and the measurements of its phases."""

    route: ComparedEncoder
    data: str
    settings: Settings
    figures: tuple[Figures, ...]


def seconds(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Make Figure 9.5a: seconds of every operation, one phone after the other on one core."""
    rows: list[Row] = []
    for each in _timed(setup, full):
        phones = each.settings.phones
        taken = [operations(figures) for figures in each.figures]
        for operation in taken[0]:
            all_seconds = estimate([by[operation].phone_seconds for by in taken])
            server = estimate([by[operation].server_seconds for by in taken])
            together = estimate(
                [by[operation].phone_seconds + by[operation].server_seconds for by in taken]
            )
            rows.append(
                {
                    "data": each.data,
                    "route": each.route.name,
                    PHONES: phones,
                    "operation": operation,
                    "repeats": together.seeds,
                    "seconds": round(together.mean, 6),
                    "seconds_interval_95": _wide(together),
                    "milliseconds_of_a_phone": round(1000 * all_seconds.mean / phones, 6),
                    "server_seconds": round(server.mean, 6),
                }
            )
    shown = ("data", "route", PHONES, "operation", "seconds", "seconds_interval_95",
             "milliseconds_of_a_phone", "server_seconds")  # fmt: skip
    note = f"""# Seconds of every operation

After Figure 9.5a of Liebenow (2022), which times multiple learning phases in sequential order on a
Dell Latitude 5320 (11th generation Core i7, 16 GB). Here they are seconds of CPU on {_machine()},
with the real secure sum, {setup.size.recordings} recordings per phone and no dropouts, averaged
over phases: {setup.size.seeds} each. "Seconds" adds up all phones and the server, as a run in
sequence would; the time of one phone is beside it.

{markdown_table([_digits(row) for row in rows], shown)}

The thesis gives the heights of its curves only in a picture, so they are left out. It states that
the two operations on the phone do not depend on other phones, and that global clustering and both
votes look linear in the number of phones. Here all phones' work in a vote is added up, which grows
with n and with the logarithm of n (a phone's neighbours); one phone's work hardly grows. The
thesis's noise takes no time, so there is no third curve: "as printed" would cost as much as "local,
corrected". The thesis's sum is its own code over PostgreSQL for every message, and ours is timed
without a network on both sides, so the two systems could not be compared even if the heights were
known.
"""
    return Reproduction(NAME_A, rows, lambda path: _draw_seconds(rows, path), note)


def traffic(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Make Figure 9.5b: bytes that the server receives in a phase."""
    timed = list(_timed(setup, full))
    rows: list[Row] = []
    for each in timed:
        sent = [
            sum(took.bytes_up for took in operations(figures).values()) for figures in each.figures
        ]
        rows.append(_traffic(each, MEASURED, each.settings.phones, estimate(sent).mean))
    for each in {(each.data, each.route.name): each for each in timed}.values():
        found = _found(each)
        for phones in _CROWDS:
            sums = computed_bytes(each.settings, phones, found)
            rows.append(_traffic(each, COMPUTED, phones, sum(sums.values())))
            if each.route is LOCAL:
                labels = setup.labels[each.data]
                total = thesis_bytes(each.settings, phones, found, labels)
                rows.append(_traffic(each, THESIS, phones, total))
    most = max(_CROWDS)
    at_most = {(row["data"], row["route"], row["how"]): row for row in rows if row[PHONES] == most}
    note = f"""# Incoming traffic of the server

After Figure 9.5b of Liebenow (2022), which is drawn from three formulas (9.2.6): T_LTC = n k* F for
the local top centroids, T_CV = n g for the vote on centroids and T_LV = n g* |L| for that on
labels, times 8 bytes. The inserted values are not printed. Here k* =
{Settings().top_local_centroids}, F = {DIMENSIONS} (for blobs 2), g* is
{Settings().kept_centroids(0)} or the number of classes |L|, if that is larger, and
g is the number that the largest measured phase found.

The formulas count the vectors and leave out the parts that make their sum secret: keys, encrypted
shares and their recovery, most of a phone's traffic in a phase with few candidates. On the other
hand, our phones send integers of 16 to 34 bits instead of 64-bit floating-point numbers, and
sound is projected before it is clustered. "Measured" counts all answers of real phases, "computed"
adds up the sizes of the same messages.

{markdown_table([_digits(row) for row in rows], list(rows[0]))}

At {most:,} phones: {_said(at_most)}. The thesis: "one can see that we are still in the
range of gigabytes".
"""
    return Reproduction(NAME_B, rows, lambda path: _draw_traffic(rows, path), note)


def thesis_bytes(settings: Settings, phones: int, found: int, labels: int) -> float:
    """Compute T_LTC + T_CV + T_LV of the thesis (9.2.6), in bytes.

    Args:
        settings: Settings that hold k* and g*.
        phones: Number of phones (n).
        found: Number of global centroids (g).
        labels: Number of labels (|L|).
    """
    features = 2 if settings.data == BLOBS else DIMENSIONS
    kept = min(settings.kept_centroids(labels), found)
    entries = settings.top_local_centroids * features + found + kept * labels
    return float(_THESIS_BYTES * phones * entries)


def _timed(setup: ReproductionSetup, full: bool) -> Iterator[_Timed]:
    arms: list[Arm] = []
    kinds: list[tuple[ComparedEncoder, Settings]] = []
    for data in setup.data:
        for route in _ROUTES:
            for phones in MANY if full else FEW:
                real: dict[str, Any] = {"phones": phones, "summation": SummationChoice.REAL}
                arm = replace(setup.arm(route, data, {}, **real), measure=TIMED)
                arms.append(arm)
                kinds.append((route, arm.phases[0]))
    # One after the other: processes that wait for each other's memory would be timed too.
    found = measured(arms, setup.file, 1, setup.progress)
    for arm, (route, settings), figures in zip(arms, kinds, found, strict=True):
        yield _Timed(route, str(arm.labels["data"]), settings, figures)


def _found(each: _Timed) -> int:
    return max(int(figures.get(FOUND) or 0) for figures in each.figures)


def _traffic(each: _Timed, how: str, phones: int, total: float) -> Row:
    return {
        "data": each.data,
        "route": PRINTED.name if how == THESIS else each.route.name,
        "how": how,
        PHONES: phones,
        "megabytes": round(total / 1e6, 6),
        "bytes_of_a_phone": round(total / phones, 1),
    }


def _said(rows: Mapping[tuple[Any, ...], Row]) -> str:
    return "; ".join(
        f"{float(row['megabytes']) / 1000:.2f} GB on {data} by {route}, {how}"
        for (data, route, how), row in rows.items()
    )


def _wide(value: Estimate) -> float | str:
    return "" if value.wide is None else round(value.wide, 6)


def _digits(row: Row) -> Row:
    """Format numbers below 100 with three significant digits, others as whole numbers."""
    return {
        name: f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else
        f"{value:,.0f}" if isinstance(value, float) else value
        for name, value in row.items()
    }  # fmt: skip


def _machine() -> str:
    return f"one core of {os.cpu_count()} ({platform.machine()})"


def _panels(path: Path, rows: Sequence[Row]) -> Iterator[tuple[Any, str, list[Row]]]:
    """Yield an axis for each data set, and save the picture when all are drawn."""
    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    figure, (panels,) = panels_for(len(names), 1, 5.2, sharey=True)
    for axis, data in zip(panels, names, strict=True):
        yield axis, data, [row for row in rows if row["data"] == data]
        plain_logarithmic(axis, sorted({float(row[PHONES]) for row in rows if _is_tick(row)}))
        axis.set_yscale("log")
        axis.set_xlabel("phones")
        axis.set_title(data)
    draw_legend(figure, panels[0])
    figure.savefig(path, dpi=110)


def _is_tick(row: Row) -> bool:
    """Check that a row is not measured traffic, whose sizes lie between the computed ones."""
    return row.get("how") != MEASURED


def _draw_seconds(rows: Sequence[Row], path: Path) -> None:
    for axis, _, shown in _panels(path, rows):
        curves: dict[str, list[Row]] = defaultdict(list)
        for row in shown:
            curves[str(row["operation"])].append(row)
        for operation, curve in curves.items():
            axis.errorbar(
                [row[PHONES] for row in curve],
                [row["seconds"] for row in curve],
                yerr=_whiskers(curve),
                label=operation,
                color=_COLOURS[operation],
                marker="D" if operation in (CELLS, CELL_LABELS) else "o",
                capsize=3,
            )
        axis.set_ylabel("seconds of CPU, all phones and the server")


def _whiskers(curve: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return lengths below and above; those below end above zero, as the axis is logarithmic."""
    wide = [float(row["seconds_interval_95"] or 0.0) for row in curve]
    return [
        min(each, 0.9 * float(row["seconds"])) for each, row in zip(wide, curve, strict=True)
    ], wide


def _draw_traffic(rows: Sequence[Row], path: Path) -> None:
    styles = {
        (PRINTED.name, THESIS): ("thesis: vectors of 8-byte numbers", "#e45756", "--", ""),
        (LOCAL.name, COMPUTED): ("local, all messages", LOCAL.colour, "-", ""),
        (LOCAL.name, MEASURED): ("local, measured", LOCAL.colour, "", "o"),
        (SECURE_SUM.name, COMPUTED): ("secure-sum, all messages", SECURE_SUM.colour, "-", ""),
        (SECURE_SUM.name, MEASURED): ("secure-sum, measured", SECURE_SUM.colour, "", "D"),
    }
    for axis, _, shown in _panels(path, rows):
        for (route, how), (label, colour, line, marker) in styles.items():
            curve = [row for row in shown if (row["route"], row["how"]) == (route, how)]
            axis.plot(
                [row[PHONES] for row in curve],
                [row["megabytes"] for row in curve],
                label=label, color=colour, linestyle=line, marker=marker,
            )  # fmt: skip
        axis.set_ylabel("incoming megabytes in a phase")
