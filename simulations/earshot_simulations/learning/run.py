"""What one simulated phase did."""

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
"""In `Run.labels`: the centroid is unnamed."""

DIGEST = "digest"
"""In `result.json`: that of everything else there."""

PHASE_FAILED = "the phase failed: "
"""How `Run.interrupted` begins where no interruption but the phase itself ended the run."""


def _no_integers() -> Integers:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Everything that `result.json` and `report.html` say about one simulated phase.

    A run that ended early leaves the fields of later steps at their defaults.

    Attributes:
        version: of Earshot.
        configuration: what the command was given, one entry per option.
        provenance: what else decides the result; see `learning.provenance`.
        population: what the phones heard, in words.
        phones: n, the phones that took part.
        survivors: phones that stayed to the end.
        label_names: L, the equivalence classes that phones vote for; label i names scene i.
        points: float32 (m, d), a sample of the phones' points.
        scenes: int (m,), the true scene of each point.
        start_centroids: float32 (s, d), where the cells of a discovery by secure sum began; further
            ones may have come after them.
        moved: bool (k,), which of the cells a sum has moved.
        local_centroids: float32 (c, d), all that phones published.
        local_clusters: int (c,), for each the global centroid that it went into, or `OUTLIER` or
            `LEFT_OUT` of `earshot_server.discovery.interface`.
        global_centroids: float32 (g, d).
        centroid_votes: int (g,), noisy.
        top: int (t,), the global centroids that the first vote kept.
        label_votes: int (t, L), noisy.
        labels: int (t,), the label of each kept centroid; -1 where it is unnamed.
        centroid_p_values: whether the votes for each kept centroid may be noise.
        name_p_values: whether its most frequent label may be.
        ari_train: adjusted Rand index of the kept centroids on the phones' own recordings.
        ari_test: the same on held-out recordings.
        label_accuracy: fraction of held-out recordings that get the right name; a recording whose
            nearest centroid is unnamed gets none, and counts as wrong.
        clear_label_accuracy: the same by those names alone that stand clear of the noise.
        adversary: what corrupted phones achieved; None if there were none.
        privacy: every release, in each unit.
        costs: of each private step that was released, in every unit, that of a replaced phone too.
        together: what these come to, see `earshot_server.phases.costs`.
        label_histogram: int (L,), recordings that the published centroids assign to each label
            (thesis 7.2).
        true_histogram: int (L,), recordings whose true label it is.
        steps: in order.
        skipped: recordings that could not be used.
        notes: plain sentences that the report must show.
        interrupted: why the run ended early; None if it did not.
        peak_memory_mb: largest resident memory, in megabytes, added up over this process and all
            that ran phones. What a process took before the run counts too: to measure a run, do it
            in a process of its own.
        seconds: wall-clock time of the whole run.
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
        """Whether something from outside ended it: nobody knows what it would have come to."""
        return self.interrupted is not None and not self.interrupted.startswith(PHASE_FAILED)

    @property
    def by_sums(self) -> bool:
        """Whether environments were found by secure sums over cells."""
        return self.start_centroids is not None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The label of each kept centroid; None where it may be noise, or before the vote."""
        count = len(self.top)
        labels = self.labels if len(self.labels) else np.full(count, NOBODY)
        clear = are_clear(self.name_p_values, count) if self.name_p_values else (True,) * count
        return tuple(
            self.label_names[label] if named and label != NOBODY else None
            for label, named in zip(labels, clear, strict=True)
        )


def result(run: Run) -> dict[str, object]:
    """The run as `result.json` has it: plain Python types, null for what is not a finite number.

    Counts of what a run that ended early never reached are null, too.
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
    """What cells of one label make up; each centroid of the local route is one of its own."""
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
    """What there is to say of a cell alone."""
    if run.start_centroids is None:
        return {}
    likely = run.label_names[run.labels[row]] if len(run.labels) else None
    moved = run.moved[row] if len(run.moved) else False
    start = run.start_centroids[row] if row < len(run.start_centroids) else None
    return {"likely_label": likely, "moved": moved, "start_centroid": start}


def _by_step(run: Run, value: Callable[[StepRecord], float]) -> dict[str, float]:
    """One number per step; a step that was repeated counts as one."""
    sums: dict[str, float] = {}
    for step in run.steps:
        sums[step.step] = sums.get(step.step, 0.0) + value(step)
    return sums


def plain(value: object) -> object:
    """The value in the types that JSON has; numbers that are not finite become None."""
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
