"""The settings of a simulation, checked before any work."""

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
"""Value of ε far above any that promises anything; the reports say that it promises nothing."""
MOST_PHONES = 10**7
"""Most phones of a simulation, whose server keeps all answers to a step in memory."""


def geometry_of(data: str) -> Geometry:
    """Return the geometry of data: blobs are points in the plane, and sound has directions."""
    return Geometry.EUCLIDEAN if data == BLOBS else Geometry.SPHERICAL


_VANISHING = 1e-6
"""Noise multiplier with which hardly any entry of a sum is off by one step."""


class Summation(enum.StrEnum):
    """Summations that add up ballots."""

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
"""Settings that only one discovery uses."""


class Engine(enum.StrEnum):
    """Engines that run the phones."""

    LOCAL = "local"
    """Processes of this machine."""
    RAY = "ray"
    """Nodes of a Ray cluster."""


class Agreement(enum.StrEnum):
    """Policies that phones agree to."""

    DEFAULT = "default"
    """Only phases that a phone accepts by default."""
    RECORDING = "recording"
    """Default policy without limits on a phone's whole cost: single recordings are protected."""
    ANYTHING = "anything"
    """Any valid phase."""


_NO_OPTION = Parameter(parse=False)
"""Marks a setting that the command line reads in another form."""

POLICIES: Mapping[Agreement, Policy] = {
    Agreement.DEFAULT: Policy(),
    Agreement.RECORDING: Policy.per_recording(),
    Agreement.ANYTHING: AGREES,
}
"""Policies by name."""


@dataclass(frozen=True)
class Settings:
    """The settings of one simulated phase, named like the command's options.

    Attributes:
        phones: Phones that take part.
        recordings: Recordings of a phone, on average; a public number.
        scenes: Scenes of generated data.
        data: Recordings that phones hear: blobs, soundscapes, or a folder of class/*.wav|ogg|flac.
        encoder: Encoder of sound: a shipped one by its name (contrast-1, contrast-2), or an encoder
            file; by default contrast-2. ./NAME is a file.
        labelled: Fraction of recordings that carry a label.
        heterogeneity: How phones differ.
        adversary: Fraction of phones that make each attack; equal fractions are the same phones.
        dropout: Fraction of phones that vanish during the phase (ρ).
        corrupted: Fraction of phones that an adversary may control (γ), which noise and graph are
            made for.
        budget: ε of each private step of the local route, per recording; by default what `epsilon`
            is split into, or what suits the data.
        epsilon: ε of the whole phase, per phone; by default 2. On the local route per recording, in
            place of a budget for each step.
        delta: δ of the phase.
        label_share: Share of ε (in ρ of zero-concentrated privacy) that the names of cells get.
        cells: Start centroids of a discovery by secure sums; by default 20, or 40 where crowd and ε
            allow.
        most_cells: Most cells that the start centroids may grow to (k); by default 40.
        sums: Sums over cells before they are named (T), 0 to 3.
        policy: Policy that phones agree to: default, recording (the default without limits on a
            phone's whole cost), or anything; by default recording on the local route, else default.
        discovery: Route: secure sums, or the local one.
        summation: Summation of ballots: real, or ideal, which replaces the cryptography and nothing
            else.
        engine: Engine that runs the phones: processes of this machine, or a Ray cluster.
        address: HOST:PORT of the Ray cluster; by default one is started here.
        jobs: Processes of this machine.
        seed: Seed for everything except keys.
        dimensions: Dimensions of the projection in which sound is clustered; by default 32, on the
            local route 24.
        local_centroids: Centroids that a phone computes (k).
        top_local_centroids: Centroids that a phone publishes (k*).
        top_global_centroids: Global centroids that the first vote keeps (g*).
        selection_method: Method by which a phone chooses the centroids that it publishes.
        clustering_runs: Clusterings of a phone, on average, of which it keeps the best.
        centroid_votes: Ones in a ballot of the first vote.
        label_votes: Ones in a ballot of the second vote; by default one per kept centroid.
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
        """Refuse settings that cannot be simulated, before any work.

        Raises:
            InvalidParametersError: if a setting is wrong; the message says which and what is
                accepted.
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
                "to anything, and the report says so)"
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
                f"address={self.address}: must be HOST:PORT of a Ray cluster, such as 10.0.0.7:6379"
            )

    @property
    def agreement(self) -> Agreement:
        """Policy that the phones agree to, as chosen or as the discovery needs."""
        if self.policy is not None:
            return self.policy
        local = self.discovery is Discovery.LOCAL
        return Agreement.RECORDING if local else Agreement.DEFAULT

    def refusals(self, agreement: Agreement = Agreement.DEFAULT) -> tuple[str, ...]:
        """Return all reasons why a phone with this policy would not take part."""
        today = datetime.now(UTC).date()
        refused = POLICIES[agreement].refusals_of_phase(self.any_parameters(), Ledger(), today)
        return tuple(map(str, refused))

    def expenses(self) -> tuple[Expense, ...]:
        """Return the cost of a phase to a phone, whatever the population."""
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
        """Numbers of cells that a discovery by secure sums begins with, and that they may grow to.

        Raises:
            InvalidParametersError: if a number of cells, or ε or δ, is out of range.
        """
        epsilon = self.whole_epsilon
        return cell_counts(self.phones, epsilon, self.delta, self.cells, self.most_cells)

    def any_parameters(self) -> Parameters:
        """Return the parameters of a phase over any population that the settings may name."""
        labels = ("any label",)
        if self.discovery is Discovery.SECURE_SUM:
            checks.whole("dimensions", self.projected, 1, LARGEST_DIMENSIONS)
            start = CentroidSet.of(np.ones((self.counts.start, self.projected)))
            return self._discovery_parameters("", start, labels)
        return self._learning_parameters("", geometry_of(self.data), self.projected, labels)

    def parameters(self, population: Population) -> Parameters:
        """Return the parameters of a phase over this population.

        Raises:
            MissingCentroidsError: if the population has no such start centroids.
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
        """Return the noise multipliers of each sum of cells, and of that of labels."""
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

    With `none`, ε is so large that every mechanism's noise vanishes, as without privacy.

    Raises:
        InvalidParametersError: if a name is unknown, missing or repeated, or a value is not a
            number.
    """
    names = Budget.names()
    if text.strip() == NO_BUDGET:
        return Budget(*(NO_NOISE for _ in names))
    values = parse_budget(text, names)
    if len(values) != len(names):
        expected = ",".join(f"{name}=ε" for name in names)
        raise InvalidParametersError(f"budget '{text}': give each once, as {expected}, or none")
    return Budget(*(values[name] for name in names))
