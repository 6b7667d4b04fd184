"""Findings of an audit: claimed, proven and measured ε, or the outcome of a check."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from earshot_simulations.auditing import power
from earshot_simulations.auditing.losses import Bracket

EXACT = "exact"
SAMPLED = "sampled"
_ROUNDING = 1e-9
"""Relative room for the last digits of two ways to compute the same ε."""


_LEAST_P = 1e-12


def p_said(value: float) -> str:
    """Format the p-value of a fit; one below the computed range is shown as an upper bound."""
    return f"p < {_LEAST_P:g}" if value < _LEAST_P else f"p = {value:.2g}"


class AuditRole(enum.StrEnum):
    """Reason why something is audited."""

    PRODUCT = "product"
    """Mechanism that runs in phones or at a curator; its proven cost must hold."""
    FAULT = "fault"
    """Planted fault, which the audit must catch."""


@dataclass(frozen=True)
class Technique:
    """Way in which an ε was measured.

    Attributes:
        kind: `EXACT`, up to the width of its bracket, or `SAMPLED`, a lower bound alone.
        words: Description of the measurement.
        trials: Trials of a sampled measurement, on each of the two data sets.
        confidence: Confidence of the lower bound of a sampled measurement.
        power: Power of a measurement whose trials are not independent transcripts; see
            `Finding.power`.
    """

    kind: str
    words: str
    trials: int = 0
    confidence: float = 1.0
    power: str = ""


@dataclass(frozen=True)
class Finding:
    """One mechanism against one pair of neighbours.

    Attributes:
        case: Parameters and neighbours.
        unit: Unit in which the neighbours differ.
        delta: Value of δ of every ε here.
        claimed: Claimed ε, by the paper's formula or the mechanism's own declaration.
        proven: Proven ε, by our accountant; None if there is no proof.
        measured: Measured ε: a lower bound and, for an exact method, an upper one.
        method: Way in which it was measured.
        library: Proven ε by the dp-accounting library for the same event, if it supports it.
        role: Reason why it is audited; the catalogue sets it.
        subject: Name that selects it; the catalogue sets it.
    """

    case: str
    unit: str
    delta: float
    claimed: float
    proven: float | None
    measured: Bracket
    method: Technique
    library: float | None = None
    role: AuditRole = AuditRole.PRODUCT
    subject: str = ""

    @property
    def _limit(self) -> float:
        """Smaller proven ε of both accountants, which may not be exceeded."""
        bounds = [bound for bound in (self.proven, self.library) if bound is not None]
        return min(bounds, default=math.inf) * (1 + _ROUNDING) + _ROUNDING

    @property
    def exceeds(self) -> bool:
        """Whether more was measured than was proven, by either accountant."""
        return self.measured.low > self._limit

    @property
    def power(self) -> str:
        """Smallest true ε that would be detected with a probability of at least .99.

        An exact measurement detects every ε that exceeds the proven one by the width of its
        bracket, unless the bracket has no upper end.
        """
        if self.method.power or math.isinf(self._limit):
            return self.method.power or "nothing is proven"
        if self.method.kind == SAMPLED:
            return power.of_trials(
                self.method.trials, self.method.confidence, self.delta, self._limit
            )
        width = self.measured.high - self.measured.low
        return (
            f"any ε from {self._limit + width:.4g}"
            if math.isfinite(width)
            else "unknown: no upper end"
        )

    @property
    def passed(self) -> bool:
        """Whether the finding is as required: a planted fault must exceed, nothing else may."""
        return self.exceeds == (self.role is AuditRole.FAULT)

    @property
    def verdict(self) -> str:
        """Outcome as a phrase."""
        if self.role is AuditRole.FAULT:
            return "caught" if self.exceeds else "MISSED"
        return "BROKEN" if self.exceeds else "holds"


@dataclass(frozen=True)
class Check:
    """Condition under which a proof holds.

    Attributes:
        case: Object of the check.
        required: State that the proof needs.
        found: Actual state.
        held: Whether the actual state is as required.
        words: How it was checked.
        power: Smallest error that would be detected with a probability of at least .99.
        role: Reason why it is audited; the catalogue sets it.
        subject: Name that selects it; the catalogue sets it.
    """

    case: str
    required: str
    found: str
    held: bool
    words: str
    power: str
    role: AuditRole = AuditRole.PRODUCT
    subject: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check is as required: a planted fault must not hold, all else must."""
        return bool(self.held) == (self.role is not AuditRole.FAULT)

    @property
    def verdict(self) -> str:
        """Outcome as a phrase."""
        if self.role is AuditRole.FAULT:
            return "MISSED" if self.held else "caught"
        return "holds" if self.held else "BROKEN"


Result = Finding | Check
