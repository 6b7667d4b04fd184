"""Findings of a phase on either route to environments: scores, JSON and parts of the report.

`local` and `secure_sum` add those of one route.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import nearest
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import Places
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.privacy.significance import LEVEL, are_clear
from earshot_server.dashboard.spending import is_vacuous
from earshot_server.discovery.merging import grouped
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import Course
from earshot_simulations.phases.run import UNPROTECTED, PhaseFindings, Run
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.reporting import plane
from earshot_simulations.reporting.charts import histogram
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.words import at_delta, counted, optional, percent, whole

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer[Any]]
Labels = npt.NDArray[np.int64]

NOBODY = -1
"""Label in `EnvironmentFindings.labels` of an unnamed place."""

_PICTURED_POINTS = 4000
_PICTURED_PHONES = 200
ATTACKS = {
    "poisoning": "heard only a place that no other phone heard, and sent it without noise",
    "ballot_stuffing": "cast ballots as large as a sum can carry, without noise",
    "swapped_labels": "labelled two scenes, each with the other's label",
    "one_label": "labelled everything with the last label",
    "pushed_label": "heard only the opposite of the first label's sound, under that label",
    "negative_counts": "counted their labelled recordings backwards",
    "false_vectors": "added vectors far longer than a phone's",
    "wrong_shares": "revealed wrong shares of their neighbours' secrets",
    "garbage": "answered every task with random bytes",
    "dropouts": "vanished together before the last round of the last secure sum",
}
"""Actions of the attacking phones, by the attack's name in `Adversary`."""


COUNTED = ("named", "global_centroids", "top_global_centroids")
"""Entries of `result.json` that count centroids on the local route, and labels and their prototypes
on the route by secure sums."""
COMPARED = (
    "survivors",
    "ari_train",
    "ari_test",
    "label_accuracy",
    "clear_label_accuracy",
    "unknown",
    "cell_ari",
    *COUNTED,
)
"""Entries of `result.json` by which two runs are compared, in addition to costs."""


def no_integers() -> Integers:
    """Return an empty array, for steps that a run never reached."""
    return np.empty(0, dtype=np.int64)


class Pictured(NamedTuple):
    """A picture of one step of a phase, for a page.

    Attributes:
        title: Title of the picture.
        words: Caption of the picture.
        picture: Picture; None if a run that ended early never reached the step.
    """

    title: str
    words: str
    picture: Picture | None


@dataclass(frozen=True)
class PlaceScores:
    """The agreement of published places with the truth (thesis 9.2.4 and 9.2.5).

    Attributes:
        ari_train: Adjusted Rand index of nearest places against true scenes, on the recordings of
            a sample of phones; None if none of their scenes is known.
        ari_test: Adjusted Rand index on held-out recordings, which no phone has.
        label_accuracy: Fraction of held-out recordings with the right published label; a recording
            closest to an unnamed place counts as wrong.
        clear_label_accuracy: Fraction of held-out recordings with the right label from labels that
            stand clear of the noise.
        label_histogram: Number of held-out recordings assigned to each label, shape (labels,)
            (thesis 7.2).
        true_histogram: Number of held-out recordings with each true label, shape (labels,).
        cell_ari: Adjusted Rand index, on held-out recordings, of cells merged into as many groups
            as there are labels, without using any label; None where there are no cells.
        unknown: Fraction of held-out recordings beyond the result's radius, which a phone calls
            unknown; None without a radius.
    """

    ari_train: float | None
    ari_test: float
    label_accuracy: float
    clear_label_accuracy: float
    label_histogram: Labels
    true_histogram: Labels
    cell_ari: float | None = None
    unknown: float | None = None


def score(result: NamedCentroids, heard: Recordings, held_out: Recordings) -> PlaceScores:
    """Score a published result; label i is the name of scene i."""
    from sklearn.metrics import adjusted_rand_score

    places, total = Places.of(result), len(result.label_names)
    anywhere = places._replace(radius=None)
    train, test = (
        np.array([NOBODY if place is None else place for place in anywhere.within(each.points)])
        for each in (heard, held_out)
    )
    groups = np.array([*result.environments, NOBODY])  # the last entry is for no place
    clear = np.array([*(name is not None for name in result.names), False])
    named = np.array([*result.labels, NOBODY])[test]
    right = named == held_out.scenes
    return PlaceScores(
        ari_train=float(adjusted_rand_score(heard.scenes, groups[train])) if len(train) else None,
        ari_test=float(adjusted_rand_score(held_out.scenes, groups[test])),
        label_accuracy=float(np.mean(right)),
        clear_label_accuracy=float(np.mean(right & clear[test])),
        label_histogram=np.bincount(named[named >= 0], minlength=total),
        true_histogram=np.bincount(held_out.scenes, minlength=total),
        cell_ari=_cell_ari(result, held_out) if isinstance(result, Discovered) else None,
        unknown=_unknown(places, held_out),
    )


def _unknown(places: Places, held_out: Recordings) -> float | None:
    if places.radius is None:
        return None
    near = places.within(held_out.points)
    return near.count(None) / len(near)


def _cell_ari(result: Discovered, held_out: Recordings) -> float | None:
    from sklearn.metrics import adjusted_rand_score

    cells = result.cells.array()
    groups = grouped(cells, np.array(result.cell_lengths), len(result.label_names))
    owners = nearest(held_out.points, cells, result.geometry)
    return float(adjusted_rand_score(held_out.scenes, groups[owners]))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EnvironmentFindings(PhaseFindings):
    """Places that a phase found on either route, with their names.

    A score is None, and an array empty, where the run ended before it.

    Attributes:
        label_names: Equivalence classes that phones vote for, L of them; label i names scene i.
        points: Sample of the phones' points, float32 (m, d).
        scenes: True scene of each point, int (m,).
        global_centroids: Places found, centroids or prototypes, float32 (g, d).
        top: Indices of the kept places, int (t,).
        labels: Label of each kept place, int (t,); -1 for an unnamed one.
        name_p_values: P-value of each kept place's label, under noise alone.
        ari_train: Adjusted Rand index of the kept places on recordings of a sample of phones.
        ari_test: Adjusted Rand index of the kept places on held-out recordings.
        label_accuracy: Fraction of held-out recordings that get the right name; a recording whose
            nearest place is unnamed gets none, and counts as wrong.
        clear_label_accuracy: Fraction of held-out recordings that get the right name from names
            that stand clear of the noise.
        label_histogram: Number of recordings that the published places assign to each label, int
            (L,) (thesis 7.2).
        true_histogram: Number of recordings with each true label, int (L,).
        cell_ari: Adjusted Rand index, on held-out recordings, of cells alone, merged into as many
            groups as there are labels; None where there are no cells.
        unknown: Fraction of held-out recordings beyond the result's radius, which a phone calls
            unknown; None without a radius.
    """

    place: ClassVar[str]
    """Noun for a place that the route publishes."""
    unit: ClassVar[Unit]
    """Unit that the route protects."""
    counts: ClassVar[str]
    """Name of the count of places at the head of a page."""
    adversary_votes: ClassVar[str]
    """Name of the votes that decide whether the adversary's place is published."""
    other_places: ClassVar[str]
    """Noun for places other than the adversary's."""
    level: ClassVar[float] = LEVEL
    """Largest share of phases in which noise alone names a place."""

    label_names: tuple[str, ...]
    points: Floats
    scenes: Integers = field(default_factory=no_integers)
    global_centroids: Floats | None = None
    top: Integers = field(default_factory=no_integers)
    labels: Integers = field(default_factory=no_integers)
    name_p_values: tuple[float, ...] = ()
    ari_train: float | None = None
    ari_test: float | None = None
    label_accuracy: float | None = None
    clear_label_accuracy: float | None = None
    label_histogram: Integers = field(default_factory=no_integers)
    true_histogram: Integers = field(default_factory=no_integers)
    cell_ari: float | None = None
    unknown: float | None = None

    @classmethod
    def of(cls, population: SimulatedPopulation, course: Course, seed: int) -> Self:
        """Return the findings of a phase so far, with their scores once it is published."""
        if not course.at:
            nothing = np.empty((0, population.dimensions), np.float32)
            return cls(label_names=population.labels, points=nothing)
        sample, state = heard_by_some(population, seed), course.coordinator.state
        known = cls.known(state)
        result = course.coordinator.result() if state.step == PUBLISHED else None
        if isinstance(result, NamedCentroids):
            known |= vars(score(result, sample, population.held_out()))
        return cls(
            label_names=population.labels,
            points=sample.points[:_PICTURED_POINTS],
            scenes=sample.scenes[:_PICTURED_POINTS],
            **known,
        )

    @staticmethod
    @abstractmethod
    def known(state: object) -> dict[str, Any]:
        """Return the server's results of a phase so far, as fields of the findings."""

    @staticmethod
    @abstractmethod
    def counts_of(figures: Mapping[str, Any]) -> dict[str, Any]:
        """Return the counts of a `result.json` for its summary, by name."""

    @property
    def names(self) -> tuple[str | None, ...]:
        """Label of each kept place; None where it may be noise, or before the vote."""
        count = len(self.top)
        labels = self.labels if len(self.labels) else np.full(count, NOBODY)
        clear = are_clear(self.name_p_values, count) if self.name_p_values else (True,) * count
        return tuple(
            self.label_names[label] if named and label != NOBODY else None
            for label, named in zip(labels, clear, strict=True)
        )

    @property
    def named(self) -> int | None:
        """Number of kept places with a name; None before there are any."""
        return len(self.names) - self.names.count(None) if len(self.labels) else None

    def unnamed(self) -> str:
        """Return a clause on how many kept places have no name; empty if all have one."""
        count = self.names.count(None)
        return f"{counted(count, self.place)} of {len(self.names)} stayed unnamed" if count else ""

    @property
    def clear_part(self) -> float | None:
        """`clear_label_accuracy`, or None if it equals `label_accuracy`."""
        clear = self.clear_label_accuracy
        return None if clear is None or clear == self.label_accuracy else clear

    # ---------------------------------------------------------------------------------- as JSON

    @property
    def published_by_phones(self) -> tuple[int | None, int | None]:
        """Numbers of places that phones published, and of those that the server clustered."""
        return None, None

    def environments(self) -> list[dict[str, object]]:
        """Return the environments that the places belong to, as in `result.json`."""
        kept = zip(self.top, self.names, strict=True)
        return [{"label": name, "centroids": [index]} for index, name in kept]

    @abstractmethod
    def kept(self, row: int) -> dict[str, object]:
        """Return the entries of a kept place that only this route has, as in `result.json`."""

    def added(self) -> dict[str, object]:
        """Return the other entries that only this route has, as in `result.json`."""
        return {}

    @override
    def described(self, run: Run[Any]) -> dict[str, object]:
        by_phones, clustered = self.published_by_phones
        return {
            "version": run.version,
            "interrupted": run.interrupted,
            "phones": run.phones,
            "survivors": run.survivors,
            "seed": run.configuration.get("seed"),
            "ari_train": self.ari_train,
            "ari_test": self.ari_test,
            "label_accuracy": self.label_accuracy,
            "clear_label_accuracy": self.clear_label_accuracy,
            "unknown": self.unknown,
            "cell_ari": self.cell_ari,
            "named": self.named,
            "local_centroids": by_phones or None,
            "clustered_centroids": clustered or None,
            "global_centroids": optional_length(self.global_centroids),
            "top_global_centroids": len(self.top) or None,
            "environments": self.environments(),
            "centroids": self._places(),
            **self.added(),
            "adversary": None if run.adversary is None else vars(run.adversary),
            "privacy": run.spent(),
            "seconds": {"steps": run.by_step(lambda step: step.seconds), "total": run.seconds},
            "refused_by_step": run.by_step(lambda step: step.refused),
            "bytes_up_per_phone": run.by_step(lambda step: step.per_phone(step.bytes_up)),
            "bytes_down_per_phone": run.by_step(lambda step: step.per_phone(step.bytes_down)),
            "peak_memory_mb": run.peak_memory_mb,
            "skipped": run.left_out(),
            "configuration": run.configuration,
            "provenance": run.provenance,
            "notes": run.notes,
        }

    def _places(self) -> list[dict[str, object]]:
        if self.global_centroids is None:
            return []
        return [
            {
                "index": index,
                "label": name,
                "p_value": self.name_p_values[row] if self.name_p_values else None,
                **self.kept(row),
                "centroid": self.global_centroids[index],
            }
            for row, (index, name) in enumerate(zip(self.top, self.names, strict=True))
        ]

    # -------------------------------------------------------------------------------- on a page

    @abstractmethod
    def count(self) -> str:
        """Return the counts of places by outcome, as text."""

    @abstractmethod
    def steps(self, frame: plane.Frame) -> tuple[Pictured, ...]:
        """Return the steps that follow hearing, in order."""

    def heard(self, frame: plane.Frame) -> Pictured:
        """Return the first step of all phases."""
        return Pictured(
            "What the phones heard",
            f"A sample of {counted(len(self.points), 'recording')}, coloured by true scene. "
            "No phone and no server knows this picture.",
            plane.recordings(self.points, self.scenes, self.label_names, frame),
        )

    def in_plane(self) -> tuple[str, list[Pictured]]:
        """Return a sentence on the choice of the plane, and the pictures of all steps in it."""
        frame = plane.frame(self.points)
        return plane.projection(frame), [self.heard(frame), *self.steps(frame)]

    @override
    def picture(self) -> Picture | None:
        if not len(self.points):
            return None
        pictures = [step.picture for step in self.in_plane()[1]]
        return next(filter(None, reversed(pictures)), None)

    def histogram(self) -> Picture | None:
        """Draw recordings per label, as named and true; None if uncounted."""
        return histogram(self.label_names, self.label_histogram, self.true_histogram)

    @override
    def outcome(self, run: Run[Any]) -> str:
        who = f"{whole(run.survivors)} of {counted(run.phones, 'phone')}"
        environments = len({name for name in self.names if name is not None})
        if not environments:
            return f"{who} stayed to the end, but no environment was found and named."
        clauses = [f"{who} found {counted(environments, 'environment')}"]
        if unnamed := self.unnamed():
            clauses.append(unnamed)
        clear = self.clear_part
        if self.label_accuracy is not None:
            known = " of these scenes, which the encoder knows," if run.is_known else ""
            clauses.append(
                f"a new recording{known} gets the right name {percent(self.label_accuracy)} of "
                "the time"
                + (f" ({percent(clear)} by names clear of the noise)" if clear is not None else "")
            )
        if run.noiseless:
            clauses.append(UNPROTECTED)
        elif run.privacy:
            clauses.append(f"total privacy cost {_in_both_units(run.together)}")
        return "; ".join(clauses) + "."

    @override
    def figures(self) -> dict[str, str]:
        clear = self.clear_part
        return {
            self.counts: self.count(),
            "clustering (ARI), held out": optional(self.ari_test, "{:.2f}".format),
            "clustering (ARI), heard": optional(self.ari_train, "{:.2f}".format),
            "right name, held out": optional(self.label_accuracy, percent),
            **({} if clear is None else {"right name, clear of the noise": percent(clear)}),
            **({} if self.unknown is None else {"unknown": percent(self.unknown)}),
            **({} if self.cell_ari is None else {"cells alone (ARI)": f"{self.cell_ari:.2f}"}),
        }

    @staticmethod
    def attacks(success: Success) -> list[list[str]]:
        """Return each attack on the phase, the number of its phones, and their actions."""
        return [
            [name.replace("_", " "), whole(count), ATTACKS.get(name, "what its program says")]
            for name, count in success.phones.items()
        ]

    @staticmethod
    def goal(success: Success) -> str:
        """Return the goal of the adversary; that of the caller's own attack is unknown."""
        if success.phones.keys() <= ATTACKS.keys():
            return (
                "It wanted a place that no phone heard to be published under the first label, or "
                "sound to be named wrongly."
            )
        return "An attack of its own was among those that it made."


def heard_by_some(population: SimulatedPopulation, seed: int) -> Recordings:
    """Return recordings with known scenes of up to 200 phones, shuffled, to score and to draw."""
    generator = np.random.default_rng([seed, 0x5])
    some = generator.permutation(population.phones)[:_PICTURED_PHONES]
    sample = [population.recordings(int(phone)) for phone in some]
    mixed = generator.permutation(sum(len(recordings.points) for recordings in sample))
    columns = zip(*(recordings[:3] for recordings in sample), strict=True)
    heard = Recordings(*(np.concatenate(column)[mixed] for column in columns))
    return heard.rows(heard.scenes >= 0)


def optional_length(array: Floats | None) -> int | None:
    """Return the number of places; None if a run never reached them."""
    return None if array is None else len(array)


def _in_both_units(costs: Mapping[Unit, Cost]) -> str:
    return " and ".join(
        f"ε = {at_delta(costs[unit])} per {unit.value}"
        + (" (vacuous)" if is_vacuous(costs[unit]) else "")
        for unit in (Unit.RECORDING, Unit.PHONE)
    )
