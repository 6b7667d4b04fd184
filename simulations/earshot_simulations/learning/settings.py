"""What a simulation is asked to do, checked before any work."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import numpy as np
from cyclopts import Parameter

from earshot_client.policy import Policy
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import CellCounts, Noises, cell_counts, noises
from earshot_protocol.phases.learning import LARGEST_RECORDINGS, Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import LARGEST_DIMENSIONS
from earshot_server.discovery.route import Discovery as Discovery  # one of the settings
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.engine.interface import AGREES
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.populations import Heterogeneity, Population

BLOBS = "blobs"
SOUNDSCAPES = "soundscapes"

NO_BUDGET = "none"
NO_NOISE = 1e6
"""Far above any ε that promises anything; the reports say that it promises nothing."""
MOST_PHONES = 10**7
"""The server of a simulation keeps all answers to a step in its memory."""


def geometry_of(data: str) -> Geometry:
    """How distances are taken: blobs are points in the plane, and sound has directions."""
    return Geometry.EUCLIDEAN if data == BLOBS else Geometry.SPHERICAL


_VANISHING = 1e-6
"""As a noise multiplier: hardly an entry of a sum is off by one step."""


class Summation(enum.StrEnum):
    """How ballots are added up."""

    REAL = "real"
    IDEAL = "ideal"


_DIMENSIONS = {
    Discovery.SECURE_SUM: discovery_budget.DIMENSIONS,
    Discovery.LOCAL: learning_budget.DIMENSIONS,
}

OPTIONS: Mapping[Discovery, frozenset[str]] = {
    Discovery.SECURE_SUM: frozenset({"label_share", "cells", "most_cells", "sums"}),
    Discovery.LOCAL: frozenset(
        {
            *("budget", "clustering_runs", "selection_method", "centroid_votes", "label_votes"),
            *("local_centroids", "top_local_centroids", "top_global_centroids"),
        }
    ),
}
"""The settings of one discovery alone."""


class Engine(enum.StrEnum):
    """Where the phones run."""

    LOCAL = "local"
    """In processes of this machine."""
    RAY = "ray"
    """On the nodes of a Ray cluster."""


class Agreement(enum.StrEnum):
    """What the phones agree to."""

    DEFAULT = "default"
    """Only what a phone accepts by default."""
    RECORDING = "recording"
    """The same, but for what it costs a phone as a whole: single recordings are protected."""
    ANYTHING = "anything"
    """Whatever is valid."""


_NO_OPTION = Parameter(parse=False)
"""Marks a setting that the command line reads in another form."""

POLICIES: Mapping[Agreement, Policy] = {
    Agreement.DEFAULT: Policy(),
    Agreement.RECORDING: Policy.per_recording(),
    Agreement.ANYTHING: AGREES,
}
"""What the names of policies stand for."""


@dataclass(frozen=True)
class Settings:
    """One simulated phase; the names are those of the command's options.

    Attributes:
        phones: that take part.
        recordings: of a phone, on average; a public number.
        scenes: of generated data.
        data: `blobs`, `soundscapes`, or the path of a folder of class/*.wav|ogg|flac.
        encoder: for sound: the name of a shipped encoder, or the path of an encoder file; None for
            the default one.
        labelled: fraction of recordings that carry a label.
        heterogeneity: how phones differ.
        adversary: which phones do what to the phase.
        dropout: ρ, fraction of phones that vanish during the phase.
        corrupted: γ, the fraction of phones that an adversary may control, for which noise and
            graph are made; who really is corrupted, `adversary` says.
        budget: ε of each private step of the local route, in the recording unit; None for what
            `epsilon` is split into, or for what is usual with such data.
        epsilon: ε of the whole phase; by secure sums per phone, None for what is usual; on the
            local route per recording, None for what `budget` costs.
        delta: δ of it.
        label_share: of what secure sums spend (as ρ of zero-concentrated privacy), for the names.
        cells: start centroids of a discovery by secure sums; None for what suits phones and budget
            (`usual_cells`).
        most_cells: k of it, to which these may grow; None for what is usual.
        sums: T of it, how often cells are summed.
        policy: what the phones agree to; None for what `discovery` needs: `recording` where it is
            local, else `default`.
        discovery: how global centroids are found.
        summation: how ballots are added up.
        engine: where phones run.
        address: HOST:PORT of a Ray cluster; None for one of the run's own, on this machine.
        jobs: processes of this machine.
        seed: of everything but keys.
        dimensions: of the projection in which sound is clustered; None for what suits the route.
        local_centroids: k.
        top_local_centroids: k*.
        top_global_centroids: g*.
        selection_method: how a phone chooses which centroids it publishes.
        clustering_runs: how often a phone clusters, on average, to keep the best.
        centroid_votes: ones in a ballot of the first vote.
        label_votes: ones in a ballot of the second vote; None for one a kept centroid.
    """

    phones: int = 500
    recordings: int = learning_budget.RECORDINGS
    scenes: int = 10
    data: str = BLOBS
    encoder: str | None = None
    labelled: float = 0.3
    heterogeneity: Heterogeneity = field(default_factory=Heterogeneity)
    adversary: Adversary = field(default_factory=Adversary)
    dropout: float = 0.0
    corrupted: float = 0.05
    budget: Annotated[Budget | None, _NO_OPTION] = None
    epsilon: float | None = None
    delta: float = discovery_budget.DELTA
    label_share: float = discovery_budget.LABEL_SHARE
    cells: int | None = None
    most_cells: int | None = None
    sums: int = discovery_budget.SUMS
    policy: Agreement | None = None
    discovery: Annotated[Discovery, _NO_OPTION] = Discovery.SECURE_SUM
    summation: Summation = Summation.REAL
    engine: Engine = Engine.LOCAL
    address: str | None = None
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 0
    dimensions: int | None = None
    local_centroids: int = learning_budget.LOCAL_CENTROIDS
    top_local_centroids: int = learning_budget.TOP_LOCAL_CENTROIDS
    top_global_centroids: int = learning_budget.TOP_GLOBAL_CENTROIDS
    selection_method: SelectionMethod = SelectionMethod.NOISY_MAX
    clustering_runs: int = 1
    centroid_votes: int = learning_budget.CENTROID_VOTES
    label_votes: int | None = None

    def check(self) -> None:
        """Refuse what cannot be simulated, before any work.

        Raises:
            InvalidParametersError: says which setting is wrong and what would be accepted.
        """
        checks.whole("recordings", self.recordings, 1, LARGEST_RECORDINGS)
        checks.whole("scenes", self.scenes)
        check_processes("jobs", self.jobs)
        self._check_address()
        checks.whole("phones", self.phones, 3, MOST_PHONES)
        checks.share("labelled", self.labelled)
        checks.whole("seed", self.seed, 0)
        if self.encoder is not None and self.data == BLOBS:
            raise InvalidParametersError(
                f"encoder={self.encoder}: blobs are points already; an encoder is for soundscapes "
                "or a folder of sound"
            )
        if self.epsilon is not None and self.budget is not None:
            raise InvalidParametersError(f"epsilon and budget: {learning_budget.ONE_OF_THEM}")
        self.any_parameters().check_feasible()
        refusals = self.refusals(self.agreement)
        if refusals:
            raise InvalidParametersError(
                f"no phone would take part by default, with --policy {self.agreement}: "
                f"{'; '.join(refusals)} (--policy {Agreement.ANYTHING} simulates phones that agree "
                "all the same, and the report says so)"
            )

    def _check_address(self) -> None:
        if self.address is None:
            return
        if self.engine is not Engine.RAY:
            raise InvalidParametersError(
                f"address={self.address}: only --engine {Engine.RAY} runs at an address"
            )
        host, _, port = self.address.rpartition(":")
        if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
            raise InvalidParametersError(
                f"address={self.address}: must be HOST:PORT of a Ray cluster, as 10.0.0.7:6379"
            )

    @property
    def agreement(self) -> Agreement:
        """What the phones agree to, as chosen or as the discovery needs."""
        if self.policy is not None:
            return self.policy
        local = self.discovery is Discovery.LOCAL
        return Agreement.RECORDING if local else Agreement.DEFAULT

    def refusals(self, agreement: Agreement = Agreement.DEFAULT) -> tuple[str, ...]:
        """Everything for which a phone of this policy would not take part."""
        today = datetime.now(UTC).date()
        refused = POLICIES[agreement].refusals_of_phase(self.any_parameters(), Ledger(), today)
        return tuple(map(str, refused))

    def expenses(self) -> tuple[Expense, ...]:
        """What a phase costs a phone, whatever the population."""
        return self.any_parameters().plan().expenses()

    @property
    def projected(self) -> int:
        """Dimensions in which sound is clustered."""
        return _DIMENSIONS[self.discovery] if self.dimensions is None else self.dimensions

    @property
    def whole_epsilon(self) -> float:
        """ε of a whole phase by secure sums, per phone."""
        return discovery_budget.EPSILON if self.epsilon is None else self.epsilon

    @property
    def counts(self) -> CellCounts:
        """With how many cells a discovery by secure sums begins, and to how many they may grow.

        Raises:
            InvalidParametersError: a number of cells, or an ε or δ, is out of range.
        """
        epsilon = self.whole_epsilon
        return cell_counts(self.phones, epsilon, self.delta, self.cells, self.most_cells)

    def any_parameters(self) -> Parameters:
        """The parameters of a phase over any population that the settings may name."""
        labels = ("any label",)
        if self.discovery is Discovery.SECURE_SUM:
            checks.whole("dimensions", self.projected, 1, LARGEST_DIMENSIONS)
            start = CentroidSet.of(np.ones((self.counts.start, self.projected)))
            return self._discovery_parameters("", start, labels)
        return self._learning_parameters("", geometry_of(self.data), self.projected, labels)

    def parameters(self, population: Population) -> Parameters:
        """The parameters of a phase over this population.

        Raises:
            MissingCentroidsError: the population has no such start centroids.
        """
        encoder, labels = population.encoder, population.labels
        if self.discovery is Discovery.SECURE_SUM:
            return self._discovery_parameters(encoder, population.start(self.counts.start), labels)
        return self._learning_parameters(
            encoder, population.geometry, population.dimensions, labels
        )

    def _discovery_parameters(
        self, encoder: str, start: CentroidSet, labels: tuple[str, ...]
    ) -> DiscoveryParameters:
        noise = self._noise(start, len(labels))
        return DiscoveryParameters(
            phones=self.phones,
            labels=labels,
            encoder=encoder,
            start=start,
            most_cells=self.counts.most,
            sums=self.sums,
            cells_noise=noise.cells,
            labels_noise=noise.labels,
            delta=self.delta,
            dropout=self.dropout,
            corrupted=self.corrupted,
        )

    def _noise(self, start: CentroidSet, labels: int) -> Noises:
        """Noise multipliers of each sum of cells, and of that of labels."""
        if self.whole_epsilon >= NO_NOISE:
            return Noises(_VANISHING, _VANISHING)
        return noises(
            self.whole_epsilon,
            self.delta,
            sums=self.sums,
            label_share=self.label_share,
            cells=self.counts.most,
            dimensions=start.dimensions,
            labels=labels,
        )

    def _learning_parameters(
        self, encoder: str, geometry: Geometry, dimensions: int, labels: tuple[str, ...]
    ) -> PhaseParameters:
        asked = PhaseParameters(
            phones=self.phones,
            recordings=self.recordings,
            dimensions=dimensions,
            geometry=geometry,
            encoder=encoder,
            labels=labels,
            local_centroids=self.local_centroids,
            top_local_centroids=self.top_local_centroids,
            top_global_centroids=self.top_global_centroids,
            centroid_votes=self.centroid_votes,
            label_votes=self.top_global_centroids if self.label_votes is None else self.label_votes,
            dropout=self.dropout,
            corrupted=self.corrupted,
            budget=self.budget or learning_budget.BUDGETS[geometry],
            delta=self.delta,
            selection_method=self.selection_method,
            clustering_runs=self.clustering_runs,
        )
        if self.epsilon is None:
            return asked
        if self.epsilon >= NO_NOISE:
            return msgspec.structs.replace(asked, budget=whole_budget(NO_BUDGET))
        return learning_budget.affordable(asked, self.epsilon)


def whole_budget(text: str) -> Budget:
    """Read `clustering=…,selection=…,centroid-vote=…,label-vote=…`, or `none`.

    `none` is an ε at which every mechanism's noise vanishes: what the system does without privacy.

    Raises:
        InvalidParametersError: a name that is unknown, missing or repeated, or not a number.
    """
    names = Budget.names()
    if text.strip() == NO_BUDGET:
        return Budget(*(NO_NOISE for _ in names))
    values = parse_budget(text, names)
    if len(values) != len(names):
        expected = ",".join(f"{name}=ε" for name in names)
        raise InvalidParametersError(f"budget '{text}': give each once, as {expected}, or none")
    return Budget(*(values[name] for name in names))
