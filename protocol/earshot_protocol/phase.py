"""A phase: its parameters, what makes them valid, and its steps.

There are two types: a learning phase finds and names environments (Algorithm 1 of the thesis), a
statistics phase counts the contacts in each of them (section 7.2).

Symbols are those of Table 5.1 of Liebenow, "Differentially Private Aggregation of Mobility Data"
(Lübeck, 2022), "the thesis" throughout.
"""

from __future__ import annotations

import enum
import math
from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry


class Step(enum.StrEnum):
    """Where a phase stands; in each step but the last two it waits for one answer per phone."""

    LOCAL_CENTROIDS = "local centroids"
    CENTROID_VOTE_ADVERTISE = "centroid vote: advertise keys"
    CENTROID_VOTE_SHARE = "centroid vote: share keys"
    CENTROID_VOTE_MASK = "centroid vote: masked input"
    CENTROID_VOTE_UNMASK = "centroid vote: unmask"
    LABEL_VOTE_ADVERTISE = "label vote: advertise keys"
    LABEL_VOTE_SHARE = "label vote: share keys"
    LABEL_VOTE_MASK = "label vote: masked input"
    LABEL_VOTE_UNMASK = "label vote: unmask"
    HISTOGRAM_ADVERTISE = "histogram: advertise keys"
    HISTOGRAM_SHARE = "histogram: share keys"
    HISTOGRAM_MASK = "histogram: masked input"
    HISTOGRAM_UNMASK = "histogram: unmask"
    PUBLISHED = "published"
    FAILED = "failed"


STEPS: tuple[Step, ...] = tuple(Step)[:9]
"""The steps of a learning phase in which phones answer, in order."""

STATISTICS_STEPS: tuple[Step, ...] = tuple(Step)[9:13]
"""The steps of a statistics phase in which phones answer, in order."""

NEXT: dict[Step, Step] = {
    step: following
    for steps in (STEPS, STATISTICS_STEPS)
    for step, following in zip(steps, (*steps[1:], Step.PUBLISHED), strict=True)
}
"""The only way forward from each step; a phase that cannot go on moves to `FAILED` instead."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Privacy budget of each private step, as ε in the recording unit.

    ε1 to ε4 of the thesis: `selection` is spent once per published local centroid.
    """

    clustering: float
    selection: float
    centroid_vote: float
    label_vote: float

    def check(self) -> None:
        """Refuse what is not a budget.

        Raises:
            InvalidParametersError: a value is not a positive, finite number.
        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InvalidParametersError(
                    f"budget {name.replace('_', '-')}={value}: a budget is a positive number"
                )


LabelName = Annotated[str, Meta(min_length=1, max_length=64)]

LARGEST_DIMENSIONS = 1024
LARGEST_LABELS = 256
LARGEST_LOCAL_CENTROIDS = 256
LARGEST_GLOBAL_CENTROIDS = 4096
LARGEST_CONTACTS = 10_000


class _Crowd(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
):
    """What both types of phase say about their phones; each documents these fields."""

    phones: int
    labels: tuple[LabelName, ...]
    dropout: float
    corrupted: float
    step_seconds: float = 86_400.0

    @property
    def honest_survivors(self) -> int:
        """The count n' = ⌈(1 − ρ − γ) n⌉, the phones whose noise can be counted on."""
        # The product is rounded first so that 0.9 · 500 does not become 451.
        return math.ceil(round((1.0 - self.dropout - self.corrupted) * self.phones, 6))

    def _check_crowd(self) -> None:
        _check_range("phones", self.phones, 3, 10**8)
        _check_range("labels", len(self.labels), 1, LARGEST_LABELS)
        _check_fraction("dropout", self.dropout)
        _check_fraction("corrupted", self.corrupted)
        if len(set(self.labels)) != len(self.labels):
            raise InvalidParametersError("labels repeat: every equivalence class is named once")
        if not (math.isfinite(self.step_seconds) and self.step_seconds > 0):
            raise InvalidParametersError(
                f"step_seconds={self.step_seconds}: a step waits a positive number of seconds"
            )


class PhaseParameters(_Crowd, frozen=True, kw_only=True, tag="learning"):
    """Everything that phones and server must agree on before a learning phase.

    Attributes:
        phones: n, the phones that are enrolled.
        recordings: N, the public, nominal number of recordings of a phone; noise and iterations
            depend on it, never on the true number.
        dimensions: of the points that phones cluster.
        geometry: how distances between points are taken.
        encoder: name of the encoder whose embeddings are clustered.
        labels: L, the equivalence classes of environments.
        local_centroids: k, centroids a phone computes.
        top_local_centroids: k*, of those, how many it publishes.
        top_global_centroids: g*, how many global centroids the first vote keeps.
        centroid_votes: v_centroids, ones allowed in a ballot of the first vote.
        label_votes: v_labels, ones allowed in a ballot of the second vote.
        dropout: ρ, the largest fraction of phones that may vanish.
        corrupted: γ, the largest fraction of phones that an adversary may control.
        budget: ε1 to ε4.
        delta: δ of the clustering step, used where its noise is Gaussian (spherical geometry).
        step_seconds: how long a step waits for phones, in seconds.
    """

    recordings: int
    dimensions: int
    geometry: Geometry
    encoder: str
    local_centroids: int
    top_local_centroids: int
    top_global_centroids: int
    centroid_votes: int
    label_votes: int
    budget: Budget
    delta: float = 1e-6

    def check(self) -> None:
        """Refuse parameters under which no phase should run.

        The conditions of the secure sum (k, t, n) are checked where its parameters are chosen.

        Raises:
            InvalidParametersError: says which value is wrong and what would be accepted.
        """
        self.budget.check()
        self._check_crowd()
        _check_range("recordings", self.recordings, 1, 10**6)
        _check_range("dimensions", self.dimensions, 1, LARGEST_DIMENSIONS)
        _check_range("local_centroids", self.local_centroids, 1, LARGEST_LOCAL_CENTROIDS)
        _check_range("top_local_centroids", self.top_local_centroids, 1, self.local_centroids)
        _check_range("top_global_centroids", self.top_global_centroids, 1, LARGEST_GLOBAL_CENTROIDS)
        _check_range("centroid_votes", self.centroid_votes, 1, self.top_global_centroids)
        _check_range("label_votes", self.label_votes, 1, self.top_global_centroids)
        if not 0 < self.delta < 1:
            raise InvalidParametersError(f"delta={self.delta}: it must lie between 0 and 1")


class StatisticsParameters(_Crowd, frozen=True, kw_only=True, tag="statistics"):
    """Everything that phones and server must agree on before a statistics phase.

    Attributes:
        phones: n, the phones that are enrolled.
        labels: L, the equivalence classes of environments that are counted.
        contacts: the most contacts that a phone counts, its newest ones.
        epsilon: ε of the histogram, in the recording unit.
        dropout: ρ, the largest fraction of phones that may vanish.
        corrupted: γ, the largest fraction of phones that an adversary may control.
        step_seconds: how long a step waits for phones, in seconds.
    """

    contacts: int
    epsilon: float

    def check(self) -> None:
        """Refuse parameters under which no phase should run.

        Raises:
            InvalidParametersError: says which value is wrong and what would be accepted.
        """
        self._check_crowd()
        _check_range("contacts", self.contacts, 1, LARGEST_CONTACTS)
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InvalidParametersError(f"epsilon={self.epsilon}: a budget is a positive number")


Parameters = PhaseParameters | StatisticsParameters
"""Of either type of phase; on the wire, `type` tells them apart."""


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidParametersError(f"{name}={value}: must lie between {least} and {most}")


def _check_fraction(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise InvalidParametersError(f"{name}={value}: a fraction is at least 0 and below 1")
