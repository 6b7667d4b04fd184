"""Parameters that phones and server agree on before a phase, whatever its kind.

Symbols are those of Table 5.1 of the thesis (docs/references.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from earshot_protocol import checks
from earshot_protocol.environments import LARGEST_CHOICES, LARGEST_NAME, LabelHierarchy
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, WrongStateError
from earshot_protocol.phases.plan import Outcome, PartTask, Plan, ReleaseAnswer, SecureSum
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.remembering import remembered
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.summations import AnySumParameters
from earshot_protocol.text import line
from earshot_protocol.traffic import check_traffic
from earshot_protocol.voting.sums import sum_parameters, two_operator_parameters

LabelName = Annotated[str, line(LARGEST_NAME, least=1)]
EncoderName = Annotated[str, line(LARGEST_NAME)]

LARGEST_CROWD = 10**8
"""Most phones in a phase."""
NOISE_CROWD = 10_000
"""Phones beyond which a phone's share of the noise is constant: noise grows as √n, counts as n."""
LARGEST_LABELS = 256
DIGEST_BYTES = 32
LARGEST_RELEASES = 4096

PerLabel = Meta(max_length=LARGEST_LABELS)
Choices = Annotated[
    tuple[Annotated[tuple[LabelName, ...], Meta(max_length=LARGEST_CHOICES)], ...], PerLabel
]
"""Choices that a poll offers for each label; empty where polls offer the labels themselves."""
Releases = Annotated[tuple[Release, ...], Meta(max_length=LARGEST_RELEASES)]
"""Privacy that an outcome cost."""


class Embeddings(NamedTuple):
    """Embeddings that a phase reads from a phone: of one encoder, in a number of dimensions."""

    encoder: str
    dimensions: int


class Parameters(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
):
    """Parameters that all kinds of phase have; each kind documents these fields.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Names of what is published, L.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on; in larger crowds every phone adds as
            much as in one of this size, so that no claimed crowd makes its share vanish.
        hierarchy: Digest of the labels and their choices (`LabelHierarchy.digest`); empty where
            polls offer the labels themselves.
        summation: Summation by which inputs are added up.
    """

    phones: int
    labels: tuple[LabelName, ...]
    dropout: float
    corrupted: float
    step_seconds: float = 86_400.0
    noise_crowd: int = NOISE_CROWD
    hierarchy: Annotated[bytes, Meta(max_length=DIGEST_BYTES)] = b""
    summation: SummationName = SummationName.BELL

    @property
    def kind(self) -> str:
        """Name of the phase's kind: its `type` on the wire."""
        return str(self.__struct_config__.tag)

    @property
    def honest_survivors(self) -> int:
        """Number of honest phones that stay, ⌈(1 − ρ − γ) n⌉.

        Raises:
            InvalidParametersError: A fraction is out of range.
        """
        dropout = checks.share("dropout", self.dropout)
        corrupted = checks.share("corrupted", self.corrupted)
        # The product is rounded first so that 0.9 · 500 does not become 451.
        return math.ceil(round((1.0 - dropout - corrupted) * self.phones, 6))

    @property
    def noise_survivors(self) -> int | None:
        """Number of phones whose noise is counted on, n' = min(⌈(1 − ρ − γ) n⌉, `noise_crowd`).

        None in a phase by two operators, which add the noise.

        Raises:
            InvalidParametersError: A fraction is out of range.
        """
        if self.summation.by_operators:
            return None
        return min(self.honest_survivors, self.noise_crowd)

    @property
    def least_survivors(self) -> int:
        """Number of phones that must answer every step, n − ⌊ρn⌋."""
        return self.phones - math.floor(round(self.dropout * self.phones, 6))

    @property
    def reads(self) -> Embeddings | None:
        """Embeddings that the phase reads; None if it reads none."""
        return None

    def plan(self) -> Plan:
        """Return the parts of the phase; phone and server derive the same.

        Raises:
            InvalidParametersError: No mechanism can be made from a value.
        """
        raise WrongStateError(f"{type(self).__name__} is not a kind of phase: it has no plan")

    @property
    def weights(self) -> tuple[int, ...]:
        """Possible weights of a phone's part in a sum, the largest first: the phone chooses one.

        By default the only weight is 1: a phone takes part, or refuses. Where 0 is among the
        weights, a phone that has spent its budget adds zeros and its share of the noise, and no one
        else can tell.
        """
        return (1,)

    def expenses(self, weight: int, recordings: int | None = None) -> tuple[Expense, ...]:
        """Return everything that a phone of this weight releases, in each unit.

        Args:
            weight: Weight of the phone's part, one of `weights`; `plan` has the cost of the
                largest.
            recordings: Recordings that the phone holds, for its own accounts; None for what is
                published.

        Raises:
            InvalidParametersError: No mechanism can be made from a value.
        """
        return self.plan().expenses(recordings)

    def check(self) -> None:
        """Refuse parameters under which no phase should run.

        The conditions of the secure sum (k, t, n) are checked where its parameters are chosen.

        Raises:
            InvalidParametersError: A value is wrong; the message says which, and what would be
                accepted.
        """
        checks.whole("phones", self.phones, 3, LARGEST_CROWD)
        checks.whole("the number of labels", len(self.labels), 1, LARGEST_LABELS)
        checks.fraction("dropout", self.dropout)
        checks.fraction("corrupted", self.corrupted)
        checks.positive("step_seconds", self.step_seconds)
        checks.whole("noise_crowd", self.noise_crowd, 1, LARGEST_CROWD)
        if len(set(self.labels)) != len(self.labels):
            raise InvalidParametersError("labels repeat: every equivalence class is named once")
        if len(self.hierarchy) not in (0, DIGEST_BYTES):
            raise InvalidParametersError(
                f"hierarchy: a digest of {DIGEST_BYTES} bytes is needed, or none"
            )

    def agreed_hierarchy(self, choices: Choices) -> LabelHierarchy:
        """Return the phase's labels with their choices, as its first task states them.

        Raises:
            InvalidParametersError: These are not a hierarchy, or not the one of the parameters.
        """
        try:
            hierarchy = hierarchy_of(self.labels, choices)
        except InvalidInputError as error:
            raise InvalidParametersError(f"labels: {error}") from error
        if (hierarchy.digest if choices else b"") != self.hierarchy:
            raise InvalidParametersError(
                "the choices of the labels do not match the digest in the parameters"
            )
        return hierarchy

    def sum_parameters(self, part: SecureSum, shape: tuple[int, ...]) -> AnySumParameters:
        """Derive the parameters of a sum over inputs of this shape; phone and server get the same.

        Raises:
            InvalidParametersError: No safe graph exists for these fractions and this many phones,
                no word holds the sum, or a message would be too large.
        """
        chosen = self._sum_parameters(part, shape)
        check_traffic(chosen)
        return chosen

    def _sum_parameters(self, part: SecureSum, shape: tuple[int, ...]) -> AnySumParameters:
        if self.summation.by_operators:
            return two_operator_parameters(
                part.mechanism,
                shape,
                self.phones,
                self.least_survivors,
                self.step_seconds,
                proved=self.summation.proved,
            )
        return sum_parameters(part.mechanism, shape, self.phones, self.dropout, self.corrupted)

    def check_feasible(self) -> None:
        """Refuse parameters under which no phase can run, before any work.

        Raises:
            InvalidParametersError: A parameter is wrong; the message says which, and what would be
                accepted.
        """
        self.check()
        if self.honest_survivors < 1:
            raise InvalidParametersError(
                f"dropout={self.dropout} and corrupted={self.corrupted}: together they must stay "
                "below 1"
            )
        for part in self.plan().parts:
            if isinstance(part, SecureSum):
                _check_noise(part)
                self._sum_parameters(part, (1,))


@remembered(4)
def check_once(parameters: Parameters | SumParameters) -> None:
    """Check parameters, but not the same ones again.

    Raises:
        InvalidParametersError: The parameters are those that `check` refuses.
    """
    parameters.check()


def hierarchy_of(labels: Sequence[str], choices: Choices) -> LabelHierarchy:
    """Return labels with the choices of each; without any, polls offer the labels themselves.

    Raises:
        InvalidInputError: These are not a hierarchy, or the choices are not as many as the labels.
    """
    if not choices:
        return _flat(tuple(labels))
    if len(choices) != len(labels):
        raise InvalidInputError(f"choices for {len(choices)} of {len(labels)} labels")
    return LabelHierarchy(dict(zip(labels, choices, strict=True)))


# All phones of a simulation have the same labels.
@functools.lru_cache(maxsize=16)
def _flat(labels: tuple[str, ...]) -> LabelHierarchy:
    return LabelHierarchy.flat(labels)


class Kind(NamedTuple):
    """Types of a kind of phase on the wire.

    Attributes:
        parameters: Parameters that are agreed on, from which the plan is derived.
        tasks: Tasks that begin the parts.
        answers: Answers to the local releases.
        outcome: Message with the published result.
    """

    parameters: type[Parameters]
    tasks: tuple[type[PartTask], ...]
    answers: tuple[type[ReleaseAnswer], ...]
    outcome: type[Outcome]


def _check_noise(part: SecureSum) -> None:
    """Refuse noise that is too large to be shared."""
    try:
        part.mechanism.share_bound(0.5)
    except InvalidParametersError as error:
        raise InvalidParametersError(
            f"budget {part.name.replace(' ', '-')}: the noise is too large for phones to draw "
            f"({error}): give a larger epsilon or more phones"
        ) from error


def parse_budget(text: str, names: Collection[str]) -> dict[str, float]:
    """Read ε of several steps as people write them: `clustering=1,selection=0.25`.

    Args:
        text: Pairs NAME=ε, separated by commas; may be empty.
        names: Names that are accepted.

    Returns:
        The given values by name.

    Raises:
        InvalidParametersError: A name is unknown or repeated, or a value is not a positive number.
    """
    budget: dict[str, float] = {}
    for part in text.split(",") if text.strip() else ():
        name, _, value = (word.strip() for word in part.partition("="))
        if not value or name not in names or name in budget:
            expected = ",".join(f"{each}=ε" for each in names)
            raise InvalidParametersError(f"budget '{text}': give each once, as {expected}")
        try:
            budget[name] = checks.positive(f"budget {name}", float(value))
        except ValueError:
            raise InvalidParametersError(
                f"budget {name}={value}: a budget is a positive number"
            ) from None
    return budget
