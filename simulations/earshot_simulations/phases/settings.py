"""Settings that every kind of simulated phase has, and those that both routes share."""

from __future__ import annotations

import enum
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from earshot_client.policy import Policy
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.learning import LARGEST_RECORDINGS
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_server.discovery.route import Discovery as Discovery  # one of the settings
from earshot_server.phases.proposal import NO_OPTION
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.interface import AGREES
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.fields import kinds, taken
from earshot_simulations.populations import Blobs, Heterogeneity, LiftedBlobs, Population

BLOBS = "blobs"
SOUNDSCAPES = "soundscapes"

NO_NOISE = 1e6
"""Value of ε of a single step with which its noise vanishes."""
NOISELESS = math.inf
"""Value of ε of a phase without noise, which protects nothing."""
INFINITE = "inf"
"""Infinite ε in `result.json`, as JSON has no such number; on the command line it is a number."""
UNPROTECTED = "no noise: nothing is protected"
"""Words for what a phase without noise promises."""
MOST_PHONES = 10**7
"""Most phones of a simulation, whose server keeps all answers to a step in memory."""

_NAMES: Mapping[str, Collection[str]] = {
    "data": (BLOBS, SOUNDSCAPES),
    "encoder": SHIPPED_ENCODERS,
}
"""Values that are not paths, of the settings that may be one."""

LARGEST_SEED = 2**63 - 1
"""Largest seed: tables hold no larger whole number."""

F = TypeVar("F")


def placed(entries: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return settings, by name, whose relative paths are those of a folder.

    Args:
        entries: Values by the names of the settings, or lists of values.
        folder: Folder that relative paths start from.
    """

    def at(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [at(name, each) for each in value]
        path = isinstance(value, str) and name in _NAMES and value not in _NAMES[name]
        return os.path.join(folder, value) if path else value

    return {name: at(name, value) for name, value in entries.items()}


def geometry_of(data: str) -> Geometry:
    """Return the geometry of data: blobs are points in the plane, and sound has directions."""
    return Geometry.EUCLIDEAN if data == BLOBS else Geometry.SPHERICAL


class SummationChoice(enum.StrEnum):
    """Summations that add up ballots."""

    REAL = "real"
    """The summation of Bell et al., by one server that follows the protocol."""
    IDEAL = "ideal"
    """Plain addition, without cryptography."""
    TWO_OPERATORS = "two-operators"
    """One message a phone, split between two operators that both add noise."""
    TWO_OPERATORS_PROVED = "two-operators-proved"
    """The same, with ballots that are proved to be ballots; on the local route alone."""

    @property
    def protocol(self) -> SummationName:
        """Name of the summation in the phase's parameters."""
        return _PROTOCOLS.get(self, SummationName.BELL)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for readers of a run on whom its phones trust."""
        if self not in _PROTOCOLS:
            return ()
        return (
            "Sums by two operators protect phones as long as the two do not put their data "
            "together, however few phones are honest.",
        )


_PROTOCOLS: Mapping[SummationChoice, SummationName] = {
    SummationChoice.TWO_OPERATORS: SummationName.TWO_OPERATORS,
    SummationChoice.TWO_OPERATORS_PROVED: SummationName.TWO_OPERATORS_PROVED,
}


class EngineChoice(enum.StrEnum):
    """Engines that run the phones."""

    LOCAL = "local"
    """Processes of this machine."""
    RAY = "ray"
    """Nodes of a Ray cluster."""


class PolicyChoice(enum.StrEnum):
    """Policies that phones agree to."""

    DEFAULT = "default"
    """Only phases that a phone accepts by default."""
    RECORDING = "recording"
    """Default policy without limits on a phone's whole cost: single recordings are protected."""
    ANYTHING = "anything"
    """Any valid phase."""


POLICIES: Mapping[PolicyChoice, Policy] = {
    PolicyChoice.DEFAULT: Policy(),
    PolicyChoice.RECORDING: Policy.per_recording(),
    PolicyChoice.ANYTHING: AGREES,
}
"""Policies by name."""


class PhaseSettings(ABC, Generic[F]):
    """Settings of a simulated phase of some kind: all that a simulation asks of the kind.

    A kind is a frozen dataclass of this type. Its fields are the options of the command, and their
    descriptions the help texts.
    """

    phones: int
    recordings: int
    scenes: int
    data: str
    pool: int | None = None
    encoder: str | None = None
    labelled: float
    heterogeneity: Heterogeneity
    summation: SummationChoice
    engine: EngineChoice = EngineChoice.LOCAL
    address: str | None = None
    jobs: int
    seed: int

    def __post_init__(self) -> None:
        for name in kinds(type(self)):
            with suppress(InvalidParametersError):  # `check` refuses it
                object.__setattr__(self, name, self.taken(name, getattr(self, name)))

    def taken(self, name: str, value: Any) -> Any:
        """Return a value that was given for a setting as one of its type, as `fields.taken`.

        Raises:
            InvalidParametersError: The value is not of that type; the message says what is
                accepted.
        """
        if isinstance(value, os.PathLike) and os.fspath(value) in _NAMES.get(name, ()):
            value = os.path.join(os.curdir, value)  # a file, whatever its name
        return taken(name, value, kinds(type(self))[name])

    def check_types(self) -> None:
        """Refuse settings of a wrong type.

        Raises:
            InvalidParametersError: A setting is of another type than its field's; the message says
                which.
        """
        for name in kinds(type(self)):
            self.taken(name, getattr(self, name))

    def check(self) -> None:
        """Refuse settings that cannot be simulated, before any work.

        Raises:
            InvalidParametersError: A setting is wrong; the message says which and what is
                accepted.
        """
        self.check_types()
        checks.whole("recordings", self.recordings, 1, LARGEST_RECORDINGS)
        checks.whole("scenes", self.scenes, 2)  # of one, any name is right
        check_processes("jobs", self.jobs)
        if self.pool is not None:
            checks.whole("pool", self.pool)
            if self.data != SOUNDSCAPES:
                raise InvalidParametersError(
                    f"pool={self.pool}: only synthesized sound has a pool, which data={self.data} "
                    f"is not; leave it out, or choose --data {SOUNDSCAPES}"
                )
        checks.whole("phones", self.phones, 3, MOST_PHONES)
        checks.share("labelled", self.labelled)
        checks.whole("seed", self.seed, 0, LARGEST_SEED)
        self.check_own()
        self.any_parameters().check_feasible()
        refusals = self.refusals(self.agreement)
        if refusals:
            raise InvalidParametersError(
                f"no phone would take part by default, with --policy {self.agreement}: "
                f"{'; '.join(refusals)} (--policy {PolicyChoice.ANYTHING} simulates phones that "
                "agree to anything)"
            )

    def check_own(self) -> None:
        """Refuse values of the settings that only this kind has.

        Raises:
            InvalidParametersError: A setting is wrong, as for `check`.
        """

    @property
    @abstractmethod
    def agreement(self) -> PolicyChoice:
        """Policy that the phones agree to, as chosen or as the kind needs."""

    def refusals(self, agreement: PolicyChoice = PolicyChoice.DEFAULT) -> tuple[str, ...]:
        """Return all reasons why a phone with this policy would not take part."""
        today = datetime.now(UTC).date()
        refused = POLICIES[agreement].refusals_of_phase(self.any_parameters(), Ledger(), today)
        return tuple(map(str, refused))

    def expenses(self) -> tuple[Expense, ...]:
        """Return the cost of a phase to a phone, whatever the population."""
        return self.any_parameters().plan().expenses()

    @abstractmethod
    def any_parameters(self) -> Parameters:
        """Return the parameters of a phase over any population that the settings may name."""

    @abstractmethod
    def parameters(self, population: Population) -> Parameters:
        """Return the parameters of a phase over this population.

        Raises:
            InvalidParametersError: The population does not have what the phase needs.
        """

    @property
    def noiseless(self) -> bool:
        """Whether the phase has no noise, so that it protects nothing."""
        return False

    @property
    def projected(self) -> int:
        """Dimensions in which sound is compared."""
        return discovery_budget.DIMENSIONS

    @property
    def blobs(self) -> type[Blobs]:
        """Population of generated points."""
        return LiftedBlobs

    def attack(self, population: Population) -> Attack:
        """Return the corrupted phones and their target, once the population is prepared."""
        del population
        return Attack()

    @abstractmethod
    def configuration(self) -> dict[str, object]:
        """Return all settings, one entry each, with defaults filled in."""

    @abstractmethod
    def found(self, population: Population, course: Course) -> F:
        """Return what a phase has found so far, and its scores if it is over."""

    def notes(self, population: Population, success: Success | None, found: F) -> Sequence[str]:
        """Return what a reader should know before trusting the figures, most important first."""
        del population, success, found
        return ()


@dataclass(frozen=True)
class CrowdOptions:
    """Phones, what they hear, and how many fail or are corrupted.

    Attributes:
        phones: Phones that take part.
        recordings: Recordings of a phone, on average; a public number.
        scenes: Scenes of generated data.
        data: Recordings that phones hear: blobs, soundscapes, or a folder of sound: a data set as
            published, or CLASS/NAME with two files or more of each class, since whole files are
            held out.
        pool: Distinct seconds of each scene that phones draw from, which later runs need not hear
            again; by default every recording of soundscapes is a new second.
        encoder: Encoder of sound: a shipped one by its name (contrast-1, contrast-2), or an encoder
            file; by default contrast-2. ./NAME is a file.
        labelled: Fraction of recordings that carry a label.
        heterogeneity: Differences between phones.
        adversary: Fraction of phones that make each attack; equal fractions are the same phones.
        dropout: Fraction of phones that vanish during the phase (ρ).
        corrupted: Fraction of phones that an adversary may control (γ), which noise and graph are
            made for.
    """

    phones: int = 500
    recordings: int = learning_budget.RECORDINGS
    scenes: int = 10
    data: str = BLOBS
    pool: int | None = None
    encoder: str | None = None
    labelled: float = 0.3
    heterogeneity: Heterogeneity = field(default_factory=Heterogeneity)
    adversary: Adversary = field(default_factory=Adversary)
    dropout: float = 0.0
    corrupted: float = 0.05


@dataclass(frozen=True)
class CostOptions:
    """Privacy cost of a whole phase.

    Attributes:
        epsilon: Budget ε of the whole phase, per phone; by default 2. On the local route per
            recording, in place of a budget for each step. With inf there is no noise, and nothing
            is protected.
        delta: Value of δ for the phase.
    """

    epsilon: float | None = None
    delta: float = discovery_budget.DELTA


@dataclass(frozen=True)
class RunOptions:
    """Policy of the phones, route, and where phones run.

    Attributes:
        policy: Policy that phones agree to: default, recording (the default without limits on a
            phone's whole cost), or anything; by default recording on the local route, else default.
        discovery: Route: secure sums, or the local one.
        summation: Summation of ballots: real, or ideal, which replaces the cryptography and nothing
            else.
        engine: Engine that runs the phones: processes of this machine, or a Ray cluster.
        address: HOST:PORT of the Ray cluster; by default one is started here.
        jobs: Processes of this machine.
        seed: Seed for everything except keys.
        dimensions: Dimensions of the projection in which sound is clustered; by default 64, on the
            local route 24.
    """

    policy: PolicyChoice | None = None
    discovery: Annotated[Discovery, NO_OPTION] = Discovery.SECURE_SUM
    summation: SummationChoice = SummationChoice.REAL
    engine: EngineChoice = EngineChoice.LOCAL
    address: str | None = None
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 0
    dimensions: int | None = None


@dataclass(frozen=True)
class OfEitherRoute(RunOptions, CostOptions, CrowdOptions):
    """Settings that both routes have; each adds its own."""


WHERE = frozenset({"address", "engine", "jobs"})
"""Settings that decide where phones run, but nothing of the result."""

ROUTE = "discovery"
"""Name of the setting that decides how environments are found, and so whom a phase protects."""
