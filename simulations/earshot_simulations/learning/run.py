"""The record of one simulated phase."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy.accounting import Release, total
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.privacy.significance import are_clear
from earshot_server.dashboard.groups import groups
from earshot_server.discovery.interface import LEFT_OUT
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import StepRecord
from earshot_simulations.learning.provenance import digest
from earshot_simulations.populations.population import Skipped

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer[Any]]

NOBODY = -1
"""Label in `Run.labels` of an unnamed centroid."""

DIGEST = "digest"
"""Name of the entry in `result.json` that is the digest of everything else there."""

PHASE_FAILED = "the phase failed: "
"""Beginning of `Run.interrupted` if the phase itself ended the run, not an interruption."""


def _no_integers() -> Integers:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Everything that `result.json` and `report.html` say about one simulated phase.

    A run that ended early leaves the fields of later steps at their defaults.

    Attributes:
        version: Version of Earshot.
        configuration: Settings given to the command, one entry per option.
        provenance: Everything else that decides the result; see `learning.provenance`.
        population: Phones' recordings, in words.
        phones: Number n of phones that took part.
        survivors: Phones that stayed to the end.
        label_names: Equivalence classes that phones vote for, L of them; label i names scene i.
        points: Sample of the phones' points, float32 (m, d).
        scenes: True scene of each point, int (m,).
        start_centroids: Starts of the cells of a discovery by secure sums, float32 (s, d); further
            cells may have come after them.
        moved: Whether a sum has moved each cell, bool (k,).
        local_centroids: Centroids that phones published, float32 (c, d).
        local_clusters: Global centroid that each local one went into, or `OUTLIER` or `LEFT_OUT` of
            `earshot_server.discovery.interface`, int (c,).
        global_centroids: Global centroids, or cells, float32 (g, d).
        centroid_votes: Noisy votes for the global centroids, int (g,).
        top: Indices of the global centroids that the first vote kept, int (t,).
        label_votes: Noisy votes for the labels of the kept centroids, int (t, L).
        labels: Label of each kept centroid, int (t,); -1 for an unnamed one.
        centroid_p_values: p-values of the votes for each kept centroid, under noise alone.
        name_p_values: p-values of the votes for each kept centroid's most frequent label, under
            noise alone.
        ari_train: Adjusted Rand index of the kept centroids on the phones' own recordings.
        ari_test: Adjusted Rand index of the kept centroids on held-out recordings.
        label_accuracy: Fraction of held-out recordings that get the right name; a recording whose
            nearest centroid is unnamed gets none, and counts as wrong.
        clear_label_accuracy: Fraction of held-out recordings that get the right name from names
            that stand clear of the noise.
        adversary: Success of the corrupted phones; None if there were none.
        privacy: Every release, in each unit.
        costs: Cost of each private step that was released, in every unit, that of a replaced phone
            included.
        together: Cost of these steps together; see `earshot_server.phases.costs`.
        label_histogram: Number of recordings that the published centroids assign to each label, int
            (L,) (thesis 7.2).
        true_histogram: Number of recordings with each true label, int (L,).
        steps: Records of the steps, in order.
        skipped: Recordings that could not be used.
        notes: Plain sentences that the report must show.
        interrupted: Reason why the run ended early; None if it did not.
        peak_memory_mb: Largest resident memory, in megabytes, added up over this process and all
            that ran phones. Memory that a process took before the run counts too: to measure a run,
            do it in a process of its own.
        seconds: Wall-clock time of the whole run, in seconds.
    """

    version: str
    population: str
    phones: int
    survivors: int
    label_names: tuple[str, ...]
    points: Floats
    scenes: Integers = field(default_factory=_no_integers)
    configuration: Mapping[str, object] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)
    start_centroids: Floats | None = None
    moved: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    local_centroids: Floats | None = None
    local_clusters: Integers = field(default_factory=_no_integers)
    global_centroids: Floats | None = None
    centroid_votes: Integers | None = None
    top: Integers = field(default_factory=_no_integers)
    label_votes: Integers | None = None
    labels: Integers = field(default_factory=_no_integers)
    centroid_p_values: tuple[float, ...] = ()
    name_p_values: tuple[float, ...] = ()
    ari_train: float | None = None
    ari_test: float | None = None
    label_accuracy: float | None = None
    clear_label_accuracy: float | None = None
    adversary: Success | None = None
    privacy: tuple[Release, ...] = ()
    costs: Mapping[str, Mapping[Unit, Cost]] = field(default_factory=dict)
    together: Mapping[Unit, Cost] = field(default_factory=dict)
    label_histogram: Integers = field(default_factory=_no_integers)
    true_histogram: Integers = field(default_factory=_no_integers)
    steps: tuple[StepRecord, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: str | None = None
    peak_memory_mb: float = 0.0
    seconds: float = 0.0

    @property
    def stopped(self) -> bool:
        """Whether something from outside ended the run, so that its outcome is unknown."""
        return self.interrupted is not None and not self.interrupted.startswith(PHASE_FAILED)

    @property
    def by_sums(self) -> bool:
        """Whether environments were found by secure sums over cells."""
        return self.start_centroids is not None

    @property
    def names(self) -> tuple[str | None, ...]:
        """Label of each kept centroid; None where it may be noise, or before the vote."""
        count = len(self.top)
        labels = self.labels if len(self.labels) else np.full(count, NOBODY)
        clear = are_clear(self.name_p_values, count) if self.name_p_values else (True,) * count
        return tuple(
            self.label_names[label] if named and label != NOBODY else None
            for label, named in zip(labels, clear, strict=True)
        )


def result(run: Run) -> dict[str, object]:
    """Return the run as in `result.json`: plain Python types, null for numbers that are not finite.

    Counts that a run that ended early never reached are null, too.
    """
    described: dict[str, object] = {
        "version": run.version,
        "interrupted": run.interrupted,
        "phones": run.phones,
        "survivors": run.survivors,
        "seed": run.configuration.get("seed"),
        "ari_train": run.ari_train,
        "ari_test": run.ari_test,
        "label_accuracy": run.label_accuracy,
        "clear_label_accuracy": run.clear_label_accuracy,
        "named": None if run.label_votes is None else len(run.names) - run.names.count(None),
        "local_centroids": len(run.local_clusters) or None,
        "clustered_centroids": int((run.local_clusters != LEFT_OUT).sum()) or None,
        "global_centroids": None if run.global_centroids is None else len(run.global_centroids),
        "top_global_centroids": len(run.top) if len(run.top) else None,
        "environments": _environments(run),
        "centroids": _kept_centroids(run),
        "adversary": None if run.adversary is None else vars(run.adversary),
        "privacy": {
            "releases": msgspec.to_builtins(run.privacy),
            "total": {
                unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
                for unit, cost in total(run.privacy).items()
            },
            "together": {
                unit.value: {"epsilon": cost.epsilon, "delta": cost.delta}
                for unit, cost in run.together.items()
            },
        },
        "seconds": {"steps": _by_step(run, lambda step: step.seconds), "total": run.seconds},
        "bytes_up_per_phone": _by_step(run, lambda step: step.per_phone(step.bytes_up)),
        "bytes_down_per_phone": _by_step(run, lambda step: step.per_phone(step.bytes_down)),
        "peak_memory_mb": run.peak_memory_mb,
        "skipped": {
            "count": len(run.skipped),
            "reasons": dict(Counter(entry.reason for entry in run.skipped).most_common()),
            "list": [asdict(entry) for entry in run.skipped],
        },
        "configuration": run.configuration,
        "provenance": run.provenance,
        "notes": run.notes,
    }
    figures = {name: plain(value) for name, value in described.items()}
    return figures | {DIGEST: digest(figures)}


def _environments(run: Run) -> list[dict[str, object]]:
    """Group cells by label; each centroid of the local route is a group of its own."""
    if not run.by_sums or run.label_votes is None:
        kept = zip(run.top, run.names, strict=True)
        return [{"label": name, "centroids": [index]} for index, name in kept]
    return [
        {
            "label": group.name,
            "centroids": group.clear,
            "doubtful": group.doubtful,
            "votes": group.votes,
        }
        for group in groups(run)
    ]


def _kept_centroids(run: Run) -> list[dict[str, object]]:
    if run.global_centroids is None:
        return []
    return [
        {
            "index": index,
            "label": name,
            "votes": None
            if run.label_votes is None
            else dict(zip(run.label_names, run.label_votes[row], strict=True)),
            "p_value": run.name_p_values[row] if run.name_p_values else None,
            "centroid_votes": None if run.centroid_votes is None else run.centroid_votes[index],
            "centroid_p_value": run.centroid_p_values[row] if run.centroid_p_values else None,
            "centroid": run.global_centroids[index],
        }
        | _cell(run, row)
        for row, (index, name) in enumerate(zip(run.top, run.names, strict=True))
    ]


def _cell(run: Run, row: int) -> dict[str, object]:
    """Return the entries that only a cell has."""
    if run.start_centroids is None:
        return {}
    likely = run.label_names[run.labels[row]] if len(run.labels) else None
    moved = run.moved[row] if len(run.moved) else False
    start = run.start_centroids[row] if row < len(run.start_centroids) else None
    return {"likely_label": likely, "moved": moved, "start_centroid": start}


def _by_step(run: Run, value: Callable[[StepRecord], float]) -> dict[str, float]:
    """Return one number per step; a step that was repeated counts as one."""
    sums: dict[str, float] = {}
    for step in run.steps:
        sums[step.step] = sums.get(step.step, 0.0) + value(step)
    return sums


def plain(value: object) -> object:
    """Convert a value to the types that JSON has; numbers that are not finite become None."""
    match value:
        case None | bool() | int():
            return value
        case str():
            # A file name may hold bytes that are not UTF-8; JSON and HTML cannot.
            return str(value).encode(errors="replace").decode()
        case float():
            return float(value) if math.isfinite(value) else None
        case np.generic() | np.ndarray():
            return plain(value.tolist())
        case msgspec.Struct():
            return plain({name: getattr(value, name) for name in value.__struct_fields__})
        case Mapping():
            return {str(plain(str(key))): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case _:
            return plain(str(value))
