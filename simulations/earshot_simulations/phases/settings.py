"""Settings of a simulated phase of any kind: as options of a command, in Python, and in files."""

from __future__ import annotations

import enum
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, Self, TypeVar

import msgspec
import numpy as np

from earshot_client.encoder import Encoder, open_encoder, start_centroids
from earshot_client.policy import Policy
from earshot_protocol import checks, distribution
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.learning import LARGEST_RECORDINGS, Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.privacy.accounting import Expense
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import GRID, Unit
from earshot_protocol.privacy.significance import are_clear
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_protocol.start_centroids import CentroidSet, MissingCentroidsError
from earshot_protocol.wire import LARGEST_DIMENSIONS
from earshot_server.phases.options import NO_OPTION, CellOptions, CentroidOptions
from earshot_server.phases.options import Discovery as Discovery  # one of the settings
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attacks, far_place, opposite_place
from earshot_simulations.adversary.built_in import TARGET_LABEL, built_in
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.interface import AGREES
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.fields import kinds, known, taken
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.local import CentroidFindings
from earshot_simulations.phases.own import OF_SETTINGS, OWN, Own
from earshot_simulations.phases.run import INFINITE, NOISELESS, UNPROTECTED
from earshot_simulations.phases.secure_sum import CellFindings
from earshot_simulations.populations import Blobs, Heterogeneity, LiftedBlobs, SimulatedPopulation
from earshot_simulations.populations.interface import LEAST_PHONES, MOST_PHONES
from earshot_simulations.populations.own import OwnPopulation
from earshot_simulations.populations.own_encoder import OwnEncoder
from earshot_simulations.populations.vectors import Vectors, counts_of, is_vectors
from earshot_simulations.reporting.words import counted
from earshot_simulations.versions import digest, file_digest, readable_digest, versions

BLOBS = "blobs"
SOUNDSCAPES = "soundscapes"

NO_NOISE = 1e6
"""ε of a single step at which its noise vanishes."""

_NAMES: Mapping[str, Collection[str]] = {
    "data": (BLOBS, SOUNDSCAPES),
    "encoder": SHIPPED_ENCODERS,
    "places": (),
}
"""Values that are not paths, of settings that may also be paths."""

WHERE = frozenset({"address", "engine", "jobs"})
"""Settings of where phones run, which do not affect the result."""

NO_BUDGET = "none"
_VANISHING = 1e-6
"""Noise multiplier at which hardly any entry of a sum is off by one step."""
_MOSTLY = 0.5
"""Share of places with a clear name from which on the note on noise is omitted."""
LARGEST_SEED = 2**63 - 1
"""Largest seed: the largest whole number of tables."""

F = TypeVar("F")


def placed(entries: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return settings, by name, with relative paths resolved against a folder.

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
    """One message per phone, split between two operators that both add noise; inputs are proved."""
    TWO_OPERATORS_UNPROVED = "two-operators-unproved"
    """The same without proofs: one phone may put in anything."""

    @property
    def protocol(self) -> SummationName:
        """Name of the summation in the phase's parameters."""
        return _PROTOCOLS.get(self, SummationName.BELL)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for readers of a run on the trust that its phones need."""
        if self not in _PROTOCOLS:
            return ()
        return (
            "Sums by two operators protect phones as long as the two do not combine their data, "
            "however few phones are honest.",
            "Inputs prove themselves: one phone weighs no more than one phone may."
            if self.protocol.proved
            else "Inputs are not proved: one phone can decide the outcome.",
        )


_PROTOCOLS: Mapping[SummationChoice, SummationName] = {
    SummationChoice.TWO_OPERATORS: SummationName.TWO_OPERATORS,
    SummationChoice.TWO_OPERATORS_UNPROVED: SummationName.TWO_OPERATORS_UNPROVED,
}


class EngineChoice(enum.StrEnum):
    """Engines that run the phones."""

    LOCAL = "local"
    """Processes of this machine."""
    RAY = "ray"
    """Nodes of a Ray cluster."""


class PolicyChoice(enum.StrEnum):
    """Policies of phones."""

    DEFAULT = "default"
    """The default policy of phones."""
    RECORDING = "recording"
    """The default without limits on a phone's whole cost: single recordings are protected."""
    ANYTHING = "anything"
    """Any valid phase."""


POLICIES: Mapping[PolicyChoice, Policy] = {
    PolicyChoice.DEFAULT: Policy(),
    PolicyChoice.RECORDING: Policy.per_recording(),
    PolicyChoice.ANYTHING: AGREES,
}
"""Policies by name."""


class PhaseSettings(ABC, Generic[F]):
    """Settings of a simulated phase of some kind: the interface of a kind for simulations.

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
        """Convert a value given for a setting to the setting's type, as `fields.taken`.

        Raises:
            InvalidParametersError: The value is not of that type; the message states what is
                accepted.
        """
        if isinstance(value, os.PathLike) and os.fspath(value) in _NAMES.get(name, ()):
            value = os.path.join(os.curdir, value)  # a file, whatever its name
        return taken(name, value, kinds(type(self))[name])

    def check_types(self) -> None:
        """Check the types of all settings.

        Raises:
            InvalidParametersError: A setting is of another type than its field; the message names
                it.
        """
        for name in kinds(type(self)):
            self.taken(name, getattr(self, name))

    def check(self, own: Own = OF_SETTINGS) -> None:
        """Check that these settings can be simulated.

        Args:
            own: Things of the caller's own that take part.

        Raises:
            InvalidParametersError: A setting is wrong, or something of the caller's own cannot be
                used; the message states which and what is accepted.
            InvalidInputError: A file of vectors cannot be used.
            MissingExtraError: The summation needs the extra `proofs`, which is not installed.
        """
        self.check_types()
        settings, population = self.over(own)
        settings._check(own, population)

    def over(self, own: Own) -> tuple[Self, OwnPopulation | None]:
        """Return the settings of a phase over what is the caller's own, and its population.

        A population of the caller's own, or a file of vectors, decides the numbers of phones and
        of dimensions, and an encoder of the caller's own may decide the latter.

        Args:
            own: Things of the caller's own that take part.

        Returns:
            Settings, and the population; None where settings name what phones hear.

        Raises:
            InvalidParametersError, InvalidInputError: As for `check`.
        """
        is_file = own.population is None and is_vectors(self.data)
        if own.population is None and not is_file:
            return self if own.encoder is None else self._heard_by(own.encoder), None
        held: Any = Vectors(Path(self.data), self.seed) if is_file else own.population
        population = OwnPopulation(held, self.needs_directions, self.data if is_file else "")
        beside = f"data={self.data}" if is_file else "a population of one's own"
        usual = type(self)()
        for name in replaced(is_file):
            if getattr(self, name) != getattr(usual, name):
                raise InvalidParametersError(not_beside(name, beside))
        if own.encoder is not None:
            raise InvalidParametersError(
                f"encoder: not beside {beside}, which holds points already; leave it out"
            )
        found = {"phones": population.phones, "dimensions": population.points}
        told = {name: f"has {number}" for name, number in found.items()}
        if is_file:
            told["phones"] = str(counts_of(Path(self.data)))
        for name in found.keys() & kinds(type(self)).keys():
            if getattr(self, name) not in (getattr(usual, name), found[name]):
                given = f"{name}={getattr(self, name)}"
                raise InvalidParametersError(not_beside(given, beside, told[name]))
        return self._with(**found), population

    def _heard_by(self, own: Encoder) -> Self:
        """Return the settings of a phase whose phones hear by an encoder of the caller's own."""
        encoder = OwnEncoder(own)
        if self.encoder is not None:
            raise InvalidParametersError(
                f"encoder={self.encoder}: not beside the encoder {encoder.name}; leave one out"
            )
        if self.data == BLOBS:
            raise InvalidParametersError(
                f"encoder {encoder.name}: blobs are points already; an encoder is for data = "
                f"'{SOUNDSCAPES}' or a folder of sound"
            )
        given = getattr(self, "dimensions", None)
        dimensions = encoder.usual_dimensions(self.projected) if given is None else given
        encoder.check_dimensions(dimensions)
        return self._with(dimensions=dimensions)

    def _with(self, **values: Any) -> Self:
        """Return the settings with other values, as far as there are such settings."""
        own: Any = self
        names = values.keys() & kinds(type(self)).keys()
        changed: Self = replace(own, **{name: values[name] for name in names})
        return changed

    def _check(self, own: Own, population: OwnPopulation | None) -> None:
        """Refuse settings that cannot be simulated over this population, as `check`."""
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
        checks.whole("phones", self.phones, LEAST_PHONES, MOST_PHONES)
        checks.share("labelled", self.labelled)
        checks.whole("seed", self.seed, 0, LARGEST_SEED)
        if own.clustering is not None and not self.clusters:
            raise InvalidParametersError(
                f"clustering {type(own.clustering).__name__}: only on the local route is anything "
                "clustered for all phones; leave it out, or choose discovery = 'local'"
            )
        if self.summation.protocol.proved:
            distribution.require(f"summation={self.summation}", ("proofs",))
        own.described()  # every key is a text
        self.check_own(own, population)
        self.any_parameters(population).check_feasible()
        refusals = self.refusals(self.agreement, population)
        if refusals:
            is_file = own.population is None and is_vectors(self.data)
            said = f"; data={self.data} {counts_of(Path(self.data))}" if is_file else ""
            anything = PolicyChoice.ANYTHING
            raise InvalidParametersError(
                f"no phone would take part by default, with --policy {self.agreement}: "
                f"{'; '.join(map(str, refusals))}{said} (--policy {anything}, or policy="
                f"'{anything}' in Python, simulates phones that agree to anything)"
            )

    def check_own(self, own: Own, population: OwnPopulation | None) -> None:
        """Check the settings that only this kind has.

        Raises:
            InvalidParametersError: A setting is wrong, as for `check`.
        """

    @property
    def clusters(self) -> bool:
        """Whether the server clusters what phones publish."""
        return False

    @property
    def needs_directions(self) -> bool:
        """Whether points must lie on the sphere."""
        return True

    @property
    @abstractmethod
    def agreement(self) -> PolicyChoice:
        """Policy of the phones, as chosen or as the kind needs."""

    def refusals(
        self,
        agreement: PolicyChoice = PolicyChoice.DEFAULT,
        population: OwnPopulation | None = None,
    ) -> tuple[RefusedError, ...]:
        """Return all reasons why a phone with this policy would not take part."""
        today, parameters = datetime.now(UTC).date(), self.any_parameters(population)
        return tuple(POLICIES[agreement].refusals_of_phase(parameters, Ledger(), today))

    def expenses(self, own: Own = OF_SETTINGS) -> tuple[Expense, ...]:
        """Return the cost of a phase to a phone, which does not depend on what it hears."""
        settings, population = self.over(own)
        return settings.any_parameters(population).plan().expenses()

    @abstractmethod
    def any_parameters(self, population: OwnPopulation | None = None) -> Parameters:
        """Return the parameters of a phase over the caller's own population.

        Without one they are those over any population that the settings may name.
        """

    @abstractmethod
    def parameters(self, population: SimulatedPopulation) -> Parameters:
        """Return the parameters of a phase over this population.

        Raises:
            InvalidParametersError: The population does not have what the phase needs.
        """

    @property
    def noiseless(self) -> bool:
        """Whether the phase has no noise, and so protects nothing."""
        return False

    def is_known(self, encoder: str) -> bool:
        """Return whether the encoder of this name was trained on such scenes."""
        # A file may have the name of a shipped encoder.
        shipped = self.encoder in (None, *SHIPPED_ENCODERS) and encoder in SHIPPED_ENCODERS
        return self.data == SOUNDSCAPES and shipped

    @property
    def projected(self) -> int:
        """Dimensions in which sound is compared."""
        return discovery_budget.DIMENSIONS

    @property
    def blobs(self) -> type[Blobs]:
        """Population of generated points."""
        return LiftedBlobs

    def attack(self, population: SimulatedPopulation) -> Attacks:
        """Return the attacks of corrupted phones, once the population is prepared."""
        del population
        return Attacks()

    def provenance(self, own: Own = OF_SETTINGS) -> dict[str, object]:
        """Return the entries by which `result.json` makes a repetition comparable.

        Args:
            own: Things of the caller's own that take part.

        Returns:
            The entries by name: `versions` of Earshot, Python and libraries (see `versions`);
            `encoder`, the SHA-256 of the encoder file, hexadecimal, None for points, which need
            none, and for an encoder of the caller's own; `data`, the SHA-256 of names, classes,
            groups and contents of the sound files, or of the file of vectors, hexadecimal, None for
            generated data; and `own`, the class and key of each thing of the caller's own, only if
            there are any.

        Raises:
            DatasetError: The folder does not exist, or has no sound.
            OSError: A file cannot be read.
        """
        vectors = is_vectors(self.data)
        sound = self.data != BLOBS and not vectors
        folder = sound and self.data != SOUNDSCAPES
        data = file_digest(Path(self.data)) if vectors else None
        named = sound and own.encoder is None
        return {
            "versions": versions(),
            "encoder": encoder_digest(self.encoder) if named else None,
            "data": _sound_digest(Path(self.data)) if folder else data,
            **({OWN: own.described()} if own.given else {}),
        }

    @abstractmethod
    def configuration(self) -> dict[str, object]:
        """Return all settings, one entry each, with defaults filled in."""

    @abstractmethod
    def found(self, population: SimulatedPopulation, course: Course) -> F:
        """Return the findings of a phase so far, with scores if it is over."""

    def notes(
        self, population: SimulatedPopulation, success: Success | None, found: F
    ) -> Sequence[str]:
        """Return caveats about the figures, most important first."""
        del population, success, found
        return ()


def not_beside(given: str, beside: str, has: str = "says itself what phones hear") -> str:
    """Return the refusal of a setting beside a population of the caller's own.

    Args:
        given: Name of the setting, with its value.
        beside: Name of the population.
        has: Statement about the population that the setting contradicts.
    """
    return f"{given}: not beside {beside}, which {has}; leave it out"


_SAID_BY_POPULATIONS = ("data", "scenes", "labelled", "heterogeneity", "pool", "encoder")


def replaced(is_file: bool) -> tuple[str, ...]:
    """Return the settings that have no effect beside a population of the caller's own.

    Args:
        is_file: Whether that is a file of vectors, which is named by `data`.
    """
    return _SAID_BY_POPULATIONS[is_file:]


def encoder_digest(named: str | None) -> str:
    """Return the SHA-256 of the encoder of this name or path; by default of the usual one."""
    name = DEFAULT_ENCODER if named is None else named
    return SHIPPED_ENCODERS.get(name) or file_digest(Path(name))


def _sound_digest(folder: Path) -> str:
    # Imported here because listing sound files loads the libraries that read them.
    from earshot_models.datasets.opening import open_dataset

    clips = open_dataset(folder).clips
    told = [[each.name, each.label, each.group, readable_digest(each.path)] for each in clips]
    return digest({"clips": told})


@dataclass(frozen=True, kw_only=True)
class CrowdSettings:
    """Phones of a simulated phase of any kind, and what they hear.

    Attributes:
        phones: Phones that take part.
        recordings: Recordings of a phone, on average; a public number.
        scenes: Scenes of generated data.
        data: Recordings that phones hear: blobs, soundscapes, or a folder of sound: a data set as
            published, or CLASS/NAME with two files or more of each class, since whole files are
            held out; or FILE.npz with arrays vectors, labels and phone.
        labelled: Fraction of recordings that carry a label.
        heterogeneity: Differences between phones.
        delta: Value of δ for the phase.
        dropout: Fraction of phones that vanish during the phase (ρ).
        corrupted: Fraction of phones that an adversary may control (γ); noise and graph allow for
            it.
        summation: Summation of inputs: real; ideal, plain addition without cryptography;
            two-operators, whose inputs are proved; or two-operators-unproved.
        jobs: Processes of this machine.
        seed: Seed for everything except keys.
    """

    phones: int = 500
    recordings: int = learning_budget.RECORDINGS
    scenes: int = 10
    data: str = BLOBS
    labelled: float = 0.3
    heterogeneity: Heterogeneity = field(default_factory=Heterogeneity)
    delta: float = discovery_budget.DELTA
    dropout: float = 0.0
    corrupted: float = 0.05
    summation: SummationChoice = SummationChoice.REAL
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class EitherRoute(CrowdSettings):
    """Settings of both routes to environments; each route adds its own.

    Attributes:
        pool: Distinct seconds of each scene that phones draw from, cached for later runs; by
            default every recording of soundscapes is a new second.
        encoder: Encoder of sound: a shipped one by its name (contrast-1, contrast-3), or an encoder
            file; by default contrast-3. ./NAME is a file.
        adversary: Fraction of phones that make each attack; equal fractions mean the same phones.
        epsilon: Budget ε of the whole phase, per phone; by default 2. On the local route per
            recording, instead of a budget for each step. With inf there is no noise, and nothing
            is protected.
        policy: Policy of phones: default, recording (the default without limits on a phone's whole
            cost), or anything; by default recording on the local route, else default.
        discovery: Route: secure sums, or the local one.
        engine: Engine that runs the phones: processes of this machine, or a Ray cluster.
        address: HOST:PORT of the Ray cluster; by default one is started here.
        dimensions: Dimensions of the projection in which sound is clustered; by default 64, on the
            local route 24.
    """

    pool: int | None = None
    encoder: str | None = None
    adversary: Adversary = field(default_factory=Adversary)
    epsilon: float | None = None
    policy: PolicyChoice | None = None
    discovery: Annotated[Discovery, NO_OPTION] = Discovery.SECURE_SUM
    engine: EngineChoice = EngineChoice.LOCAL
    address: str | None = None
    dimensions: int | None = None


def whole_budget(text: str) -> Budget:
    """Read `clustering=…,selection=…,centroid-vote=…,label-vote=…`, or `none`.

    With `none`, ε is so large that every mechanism's noise vanishes.

    Raises:
        InvalidParametersError: A name is unknown, missing or repeated, or a value is not a
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


class Route(NamedTuple):
    """A route to environments.

    Attributes:
        found: Type of the route's findings.
        dimensions: Dimensions in which sound is clustered by default.
        agreement: Default policy of phones.
        vote: Largest amount that an honest input adds to an entry of a secure sum.
        blobs: Population of generated points.
        real_sound: Result on real sound, to compare with figures on synthesized scenes.
    """

    found: type[EnvironmentFindings]
    dimensions: int
    agreement: PolicyChoice
    vote: int
    blobs: type[Blobs]
    real_sound: str


UNHEARD = (
    "(contrast-3's recipe, two folds of ESC-10, 500 phones of 50 recordings; docs/encoders.md)"
)
"""Setup of the measurement on real sound."""
ROUTES: Mapping[Discovery, Route] = {
    Discovery.SECURE_SUM: Route(
        CellFindings,
        discovery_budget.DIMENSIONS,
        PolicyChoice.DEFAULT,
        GRID,
        LiftedBlobs,
        "Real sound that its encoder had never heard got the right name 82 % of the time at ε = 2 "
        "per phone, and 82 % by names clear of the noise " + UNHEARD,
    ),
    Discovery.LOCAL: Route(
        CentroidFindings,
        learning_budget.DIMENSIONS,
        PolicyChoice.RECORDING,
        1,
        Blobs,
        "Real sound that its encoder had never heard got the right name 75 % of the time at "
        "ε = 2.8 per recording " + UNHEARD,
    ),
}
"""Routes by name."""


class Routes(enum.StrEnum):
    """Routes of a simulation."""

    SECURE_SUM = Discovery.SECURE_SUM.value
    LOCAL = Discovery.LOCAL.value
    BOTH = "both"
    """Both routes one after the other, on recordings that the crowd hears once."""

    @property
    def each(self) -> tuple[Discovery, ...]:
        """Routes in the order of their runs: the thesis's comes first."""
        if self is Routes.BOTH:
            return Discovery.LOCAL, Discovery.SECURE_SUM
        return (Discovery(self),)


@dataclass(frozen=True, kw_only=True)
class Settings(CentroidOptions, CellOptions, EitherRoute, PhaseSettings[EnvironmentFindings]):
    """The settings of one simulated phase, named like the command's options.

    Settings that only the other route has are ignored. `simulate` and `sweep` call `check` first.

    Attributes:
        budget: Budget ε of each private step of the local route, per recording; by default the
            parts of `epsilon` if given, or the usual ones for the data.
    """

    budget: Annotated[Budget | None, NO_OPTION] = None

    @property
    def route(self) -> Route:
        """Route of the phase."""
        return ROUTES[self.discovery]

    @property
    def _is_local(self) -> bool:
        return self.discovery is Discovery.LOCAL

    @property
    def _usual_budget(self) -> Budget:
        return learning_budget.BUDGETS[geometry_of(str(self.data))]

    @property
    def phone_epsilon(self) -> float:
        """Budget ε of a whole phase by secure sums, per phone."""
        return discovery_budget.EPSILON if self.epsilon is None else self.epsilon

    @property
    def counts(self) -> discovery_budget.CellCounts:
        """Numbers of cells that a discovery by secure sums starts with, and may grow to.

        Raises:
            InvalidParametersError: A number of cells, or ε or δ, is out of range.
        """
        # Without noise, cells are as many as with negligible noise.
        epsilon = min(self.phone_epsilon, NO_NOISE)
        return discovery_budget.cell_counts(
            self.phones, epsilon, self.delta, self.cells, self.most_cells
        )

    @override
    def taken(self, name: str, value: Any) -> Any:
        if name == "budget":
            if isinstance(value, str):
                value = whole_budget(value)
            elif isinstance(value, Mapping):  # missing entries keep their usual values
                value = {**entries_of(self._usual_budget), **value}
        return super().taken(name, value)

    @override
    def check_own(self, own: Own, population: OwnPopulation | None) -> None:
        _check_sound(self)
        if self.adversary.wrong_shares and self.summation is not SummationChoice.REAL:
            raise InvalidParametersError(
                f"adversary.wrong_shares={self.adversary.wrong_shares}: --summation "
                f"{self.summation} has no shares of keys; leave it out, or choose --summation real"
            )
        for name in ("pushed_label", "negative_counts", "false_vectors"):
            if self._is_local and getattr(self.adversary, name):
                raise InvalidParametersError(
                    f"adversary.{name}: only discovery by secure sums has vectors to attack; leave "
                    f"it out, or choose --discovery {Discovery.SECURE_SUM}"
                )
        by_two = (SummationChoice.TWO_OPERATORS, SummationChoice.TWO_OPERATORS_UNPROVED)
        if self.adversary.false_vectors and self.summation not in by_two:
            raise InvalidParametersError(
                f"adversary.false_vectors={self.adversary.false_vectors}: phones of --summation "
                f"{self.summation} stay within the bounds of a vector; leave it out, or choose "
                f"--summation {' or '.join(by_two)}"
            )
        if self._is_local:
            if self.epsilon is not None and self.budget is not None:
                raise InvalidParametersError(f"epsilon and budget: {learning_budget.ONE_OF_THEM}")
        elif self.data != BLOBS and population is None:
            encoder = open_encoder(self.encoder if own.encoder is None else OwnEncoder(own.encoder))
            checks.whole("dimensions", self.projected, 1, encoder.dimensions)
            try:
                start_centroids(encoder, self.projected, self.counts.start)
            except MissingCentroidsError as error:
                raise InvalidParametersError(str(error)) from None

    @property
    @override
    def agreement(self) -> PolicyChoice:
        return self.route.agreement if self.policy is None else self.policy

    @property
    @override
    def noiseless(self) -> bool:
        return self.epsilon == NOISELESS

    @property
    @override
    def projected(self) -> int:
        return self.route.dimensions if self.dimensions is None else self.dimensions

    @property
    @override
    def blobs(self) -> type[Blobs]:
        return self.route.blobs

    @property
    @override
    def clusters(self) -> bool:
        return self._is_local

    @property
    @override
    def needs_directions(self) -> bool:
        return not self._is_local

    @override
    def over(self, own: Own) -> tuple[Self, OwnPopulation | None]:
        settings, population = super().over(own)
        steps = self._is_local and self.budget is None and self.epsilon is None
        if population is None or not steps:
            return settings, population
        return settings._with(budget=learning_budget.BUDGETS[population.geometry]), population

    @override
    def any_parameters(self, population: OwnPopulation | None = None) -> Parameters:
        if population is not None:
            return self.parameters(population)
        anyhow, dimensions = ("", ("any label",)), self.projected
        if self._is_local:
            return self._local_parameters(*anyhow, geometry_of(self.data), dimensions)
        checks.whole("dimensions", dimensions, 1, LARGEST_DIMENSIONS)
        anywhere = partial(_anywhere, dimensions)
        return self._summed_parameters(*anyhow, anywhere)

    @override
    def parameters(self, population: SimulatedPopulation) -> Parameters:
        heard = population.encoder, population.labels
        if self._is_local:
            return self._local_parameters(*heard, population.geometry, population.dimensions)
        return self._summed_parameters(*heard, population.start)

    def _summed_parameters(
        self, encoder: str, labels: tuple[str, ...], start: Callable[[int], CentroidSet]
    ) -> DiscoveryParameters:
        # Without noise, cells are as many as with negligible noise.
        return self.cell_parameters(
            min(self.phone_epsilon, NO_NOISE),
            start,
            Unit.PHONE,
            _VANISHING if self.noiseless else None,
            encoder=encoder,
            labels=labels,
            rows=len(labels),
            summation=self.summation.protocol,
        )

    def _local_parameters(
        self, encoder: str, labels: tuple[str, ...], geometry: Geometry, dimensions: int
    ) -> PhaseParameters:
        budget = whole_budget(NO_BUDGET) if self.noiseless else self.budget or self._usual_budget
        return self.centroid_parameters(
            None if self.noiseless else self.epsilon,
            encoder=encoder,
            labels=labels,
            geometry=geometry,
            dimensions=dimensions,
            budget=budget,
            summation=self.summation.protocol,
        )

    @override
    def attack(self, population: SimulatedPopulation) -> Attacks:
        members = self.adversary.members(self.phones, self.seed)
        if not any(members.values()):
            return Attacks()
        return built_in(
            members,
            far_place(population, self.seed),
            self.recordings,
            self.route.vote,
            len(population.labels),
            opposite_place(population, TARGET_LABEL) if members["pushed_label"] else None,
        )

    @override
    def configuration(self) -> dict[str, object]:
        held = asdict(self) | {"policy": self.agreement}
        if not self._is_local:
            held["epsilon"] = self.phone_epsilon
        elif self.budget is None and self.epsilon is None:
            held["budget"] = self._usual_budget
        return {
            name: entries_of(value) if isinstance(value, msgspec.Struct) else value
            for name, value in held.items()
        }

    @override
    def found(self, population: SimulatedPopulation, course: Course) -> EnvironmentFindings:
        return self.route.found.of(population, course, self.seed)

    @override
    def notes(
        self, population: SimulatedPopulation, success: Success | None, found: EnvironmentFindings
    ) -> Sequence[str]:
        said = [f"{UNPROTECTED.capitalize()}."] if self.noiseless else []
        own = population if isinstance(population, OwnPopulation) else None
        refusals = "; ".join(refused.reason for refused in self.refusals(population=own))
        if refusals and self.agreement is PolicyChoice.RECORDING:
            said.append(
                "This protects single recordings, but not phones: their policy does not limit the "
                f"whole cost to a phone (--policy {PolicyChoice.RECORDING}). A phone with the "
                f"default policy would not take part: {refusals}."
            )
        elif refusals:
            said.append(
                f"No phone with the default policy would take part in this phase: {refusals}."
            )
        if self.summation is SummationChoice.IDEAL:
            said.append("The secure sum was replaced by plain addition: nothing was protected.")
        shared = self.summation.protocol is SummationName.BELL
        if shared and success is not None and success.controlled > success.expected:
            said.append(
                f"An adversary controlled {success.controlled} phones, but noise and graph allow "
                f"for at most {success.expected:g}: less was protected than this report says."
            )
        if self.is_known(population.encoder):
            said.append(
                "These scenes are synthesized, and the shipped encoder was trained on such scenes: "
                "it does better on them than on other sound."
            )
            said.append(f"{self.route.real_sound}.")
        elif self.data != BLOBS and own is None:
            said.append(
                f"The figures hold for sound like this and the encoder '{population.encoder}'. An "
                "encoder does better on sound that it was trained on, even without labels; the "
                "shipped ones heard four folds of ESC-10, spoken digits and synthesized scenes, "
                "the newer one also free sounds."
            )
        count = len(found.name_p_values)
        clear = sum(are_clear(found.name_p_values, count))
        if clear < _MOSTLY * count:
            few = f"Only {clear}" if clear else "None"
            said.append(
                f"{few} of {counted(count, found.place)} got a name that stands clear of the "
                "noise: more phones or a larger ε name more of them."
            )
        return said


def _anywhere(dimensions: int, count: int) -> CentroidSet:
    return CentroidSet.of(np.ones((count, dimensions)))


def _check_sound(settings: Settings) -> None:
    """Check that an encoder has sound, and that an address is one of a Ray cluster.

    Raises:
        InvalidParametersError: An encoder is given for points, an address without Ray, or an
            address is not HOST:PORT.
    """
    if settings.encoder is not None and settings.data == BLOBS:
        raise InvalidParametersError(
            f"encoder={settings.encoder}: blobs are points already; an encoder is for soundscapes "
            "or a folder of sound"
        )
    if settings.address is None:
        return
    if settings.engine is not EngineChoice.RAY:
        raise InvalidParametersError(
            f"address={settings.address}: only --engine {EngineChoice.RAY} runs at an address"
        )
    host, _, port = settings.address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise InvalidParametersError(
            f"address={settings.address}: must be HOST:PORT of a Ray cluster, such as 10.0.0.7:6379"
        )


def settings_of(entries: Mapping[str, Any]) -> Settings:
    """Return the settings that a file names; others keep their defaults.

    Args:
        entries: Values by the names of `Settings`; `heterogeneity`, `adversary` and `budget` are
            tables, and a budget may also be written as on the command line.

    Raises:
        InvalidParametersError: A name is unknown, a value has the wrong type, or one in a table is
            out of range; the message states which and what is accepted. `Settings.check` checks
            the rest.
    """
    held = dict(entries)
    for name in held:
        known(name, kinds(Settings))
    if isinstance(held.get("epsilon"), str) and held["epsilon"] == INFINITE:
        held["epsilon"] = NOISELESS
    settings = Settings(**held)
    settings.check_types()
    return settings


def entries_of(value: object) -> dict[str, Any]:
    """Return settings as plain values for a file; unset ones are None."""
    held: dict[str, Any] = msgspec.to_builtins(value)
    return held
