"""Which mechanisms label with the votes of teachers, and what each of them asks, as one value."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from earshot_models.votes.confident_check import Check
from earshot_models.votes.label_ballots import Approval, Clipped, Subset
from earshot_models.votes.output_ballots import Outputs
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import Agreement, Ballot, OneHot

UNITS = (Unit.PHONE, Unit.REPLACED_PHONE)
"""A teacher left out, and a teacher whose data, or one record of them, are others."""


class Name(enum.StrEnum):
    """What the command line calls a mechanism."""

    LNMAX = "lnmax"
    GNMAX = "gnmax"
    CONFIDENT = "confident"
    INTERACTIVE = "interactive"
    BINARY = "binary"
    TAU = "tau"
    POWERSET = "powerset"
    GNTHRESHOLD = "gnthreshold"
    GNTHRESHOLD_ADAPTIVE = "gnthreshold-adaptive"
    GRID_THRESHOLD = "grid-threshold"


SINGLE_WINNER = (Name.LNMAX, Name.GNMAX, Name.CONFIDENT, Name.INTERACTIVE)
THRESHOLDS = (Name.GNTHRESHOLD, Name.GNTHRESHOLD_ADAPTIVE, Name.GRID_THRESHOLD)
"""To which teachers may answer with probabilities."""
_NEEDS_CHECK = (Name.CONFIDENT, Name.INTERACTIVE)
_NEVER_CHECKED = (Name.LNMAX, Name.GNMAX)


@dataclass(frozen=True)
class Mechanism:
    """How answers come from votes.

    Attributes:
        name: which of them.
        classes: m classes, of which one wins, or k labels, of which any may.
        deviation: σ in votes, on every count; of `LNMAX` the scale 1/γ of Laplace noise.
        check: do so many votes agree? Asked of every query, or of each label; None without.
        confidence: of a student, from which `INTERACTIVE` takes its word.
        tau: τ of `TAU`.
        norm: in which ballots are clipped, 2 or 1.
        most: v: labels of a set in `POWERSET`; of `THRESHOLDS` a teacher's largest outputs, which
            alone count; all where None.
        cut: votes above which `THRESHOLD` gives a label; half of the teachers where None.
        grid: of `GRID`, votes of which one is the threshold.
        scale: g of `GRID`, of the Gumbel noise by which a curator chooses; the server of a secure
            sum chooses by noisy counts and needs none.
        bar: of `THRESHOLDS`, noisy votes that one label must have; read from the counts of a secure
            sum for free. None without.
        steps: of a whole vote, in which teachers' outputs are given; 1 for zeros and ones.
        largest_weight: ψ of the teacher that weighs most, whole.

    Raises:
        InvalidParametersError: an option out of range, missing, or of another mechanism.
    """

    name: Name
    classes: int
    deviation: float
    check: Check | None = None
    confidence: float | None = None
    tau: float | None = None
    norm: int = 2
    most: int | None = None
    cut: float | None = None
    grid: tuple[float, ...] | None = None
    scale: float | None = None
    bar: float | None = None
    steps: int = 1
    largest_weight: int = 1

    def __post_init__(self) -> None:
        what = "gamma's inverse" if self.name is Name.LNMAX else "sigma"
        checks.positive(what, self.deviation)
        checks.whole("classes", self.classes, 2 if self.name in SINGLE_WINNER else 1)
        if self.name in _NEEDS_CHECK and self.check is None:
            raise InvalidParametersError(
                f"{self.name} asks a check first: give its --threshold and --check-sigma"
            )
        if self.name in _NEVER_CHECKED and self.check is not None:
            raise InvalidParametersError(
                f"{self.name} has no check; leave --check-sigma out, or take {Name.CONFIDENT}"
            )
        self._only((Name.TAU,), "tau", self.tau)
        self._only((Name.INTERACTIVE,), "confidence", self.confidence)
        if self.name is Name.INTERACTIVE:
            checks.share("confidence", self.confidence or 0.0)
        self._only((Name.POWERSET, *THRESHOLDS), "winners", self.most, needed=False)
        if self.most is not None and not 1 <= self.most <= self.classes:
            raise InvalidParametersError(
                f"winners={self.most}: must be from 1 to the {self.classes} labels there are"
            )
        self._only((Name.GNTHRESHOLD,), "cut", self.cut, needed=False)
        self._only((Name.GRID_THRESHOLD,), "grid", self.grid)
        self._only((Name.GRID_THRESHOLD,), "scale", self.scale, needed=False)
        self._only(THRESHOLDS, "threshold without --check-sigma", self.bar, needed=False)
        self._check_thresholds()
        if self.name is not Name.POWERSET:  # whose sets only a federated tally lists
            _ = self.ballot

    def _check_thresholds(self) -> None:
        if self.name is Name.GNTHRESHOLD_ADAPTIVE:
            checks.whole("classes", self.classes, 2)
        if self.scale is not None:
            checks.positive("scale", self.scale)
        for each in (*(self.grid or ()), *((self.bar,) if self.bar is not None else ())):
            if not (math.isfinite(each) and each > 0):
                raise InvalidParametersError(f"{each}: must be a number of votes above 0")
        if self.grid == ():
            raise InvalidParametersError("grid: must be one threshold at least")
        if self.bar is not None and self.check is not None:
            raise InvalidParametersError(
                "a check is asked of the teachers or read from the counts, not both"
            )
        if self.steps != 1 and self.name not in THRESHOLDS:
            raise InvalidParametersError(
                f"{self.name} counts whole votes; probabilities are for {', '.join(THRESHOLDS)}"
            )

    def _only(
        self, names: tuple[Name, ...], option: str, value: object, needed: bool = True
    ) -> None:
        if self.name in names and needed and value is None:
            raise InvalidParametersError(f"{self.name} needs --{option}")
        if self.name not in names and value is not None:
            raise InvalidParametersError(
                f"--{option} is of {', '.join(names)}, and not of {self.name}"
            )

    @property
    def several(self) -> bool:
        """Whether any number of labels may win."""
        return self.name not in SINGLE_WINNER

    @property
    def ballot(self) -> Ballot:
        """What a teacher of weight 1 casts on one query."""
        match self.name:
            case Name.TAU:
                return Clipped(self.classes, self.tau or 0.0, self.norm)
            case Name.POWERSET:
                return Subset(self.classes, self.most)
            case Name.BINARY:
                return Approval(self.classes)
            case Name.GNTHRESHOLD | Name.GNTHRESHOLD_ADAPTIVE | Name.GRID_THRESHOLD:
                return Outputs(self.classes, self.most, self.steps)
        return OneHot(self.classes)

    @property
    def check_ballot(self) -> Ballot:
        """What a teacher of weight 1 casts on a check: of `BINARY` and `TAU` label by label."""
        per_label = self.name in (Name.BINARY, Name.TAU)
        return Approval(self.classes) if per_label else Agreement()

    def weighing(self, largest: int, mean: float) -> Mechanism:
        """The same where teachers weigh: noise and thresholds grow with the mean weight."""
        return replace(
            self,
            deviation=self.deviation * mean,
            check=self.check and Check(self.check.threshold * mean, self.check.deviation * mean),
            cut=None if self.cut is None else self.cut * mean,
            bar=None if self.bar is None else self.bar * mean,
            grid=self.grid and tuple(each * mean for each in self.grid),
            largest_weight=largest,
        )
