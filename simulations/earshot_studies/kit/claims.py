"""Claims of papers, judged by the confidence intervals of our measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"

Range = tuple[float, float]
"""Bounds of a range, both included."""
_MORE_THAN_NOTHING = math.nextafter(0, 1)
ABOVE_ZERO: Range = (_MORE_THAN_NOTHING, math.inf)
ZERO_OR_ABOVE: Range = (0.0, math.inf)


class Claim(NamedTuple):
    """A statement of a paper, and a number that decides whether it is true.

    Attributes:
        said: Statement of the paper.
        what: Meaning of the number: a difference, or a ratio.
        theirs: Number of the paper; None where it has none.
        ours: Estimate of the same number, seed by seed.
        holds: Numbers that confirm the statement.
        unless: Numbers that do not refute it: it is refuted where the whole interval is outside.
        alone: Verdict where there is no interval.
    """

    said: str
    what: str
    theirs: float | None
    ours: Estimate
    holds: Range = ABOVE_ZERO
    unless: Range = ZERO_OR_ABOVE
    alone: str = "one seed"

    @property
    def verdict(self) -> str:
        """Verdict of the interval: it confirms the claim, refutes it, or does neither."""
        if self.ours.wide is None:
            return self.alone
        low, high = self.ours.mean - self.ours.wide, self.ours.mean + self.ours.wide
        if self.holds[0] <= low and high <= self.holds[1]:
            return CONFIRMED
        return REFUTED if high < self.unless[0] or self.unless[1] < low else UNDECIDED

    def why(self, differs: str) -> str:
        """Return, in one line, the reason for the verdict and for a number other than the paper's.

        Args:
            differs: Difference from the paper that explains other numbers.
        """
        if self.ours.wide is None:
            return "a single run has no interval"
        if self.verdict == UNDECIDED:
            return "the interval is too wide to tell; more seeds narrow it"
        if self.verdict == REFUTED:
            return f"the whole interval is against it: {differs}"
        return beside(self.theirs, self.ours, differs)


def beside(theirs: float | None, ours: Estimate, differs: str) -> str:
    """Return, in one line, why our number differs from the paper's, if it does.

    Args:
        theirs: Number of the paper; None where it has none.
        ours: Estimate of the same number.
        differs: Difference from the paper that explains other numbers.
    """
    if theirs is None:
        return "the paper has no such number"
    if ours.wide is not None and abs(ours.mean - theirs) <= ours.wide:
        return "the interval includes theirs"
    return f"the size differs: {differs}"


def claims_table(claims: Sequence[Claim], who: str, differs: str) -> str:
    """Return claims on differences as a Markdown table; the last column says why in one line.

    Args:
        claims: Claims to list.
        who: Author of the claims, the first column's title.
        differs: Difference from the paper that explains other numbers.
    """
    rows: list[dict[str, Any]] = [
        {
            who: each.said,
            "difference": each.what,
            "theirs": "–" if each.theirs is None else _signed(each.theirs),
            "ours": _signed(each.ours.mean)
            + ("" if each.ours.wide is None else f" ± {each.ours.wide:.3f}"),
            "verdict": each.verdict,
            "why": each.why(differs),
        }
        for each in claims
    ]
    return markdown_table(rows, (who, "difference", "theirs", "ours", "verdict", "why"))


def _signed(value: float) -> str:
    """Format with a sign: three decimals below 100, whole numbers from there on."""
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+,.0f}"


def verdicts(claims: Sequence[Claim]) -> str:
    """Return a sentence with the number of claims of each verdict, and the refuted ones."""
    numbers = Counter(each.verdict for each in claims)
    listed = ", ".join(f"{number} {verdict}" for verdict, number in sorted(numbers.items()))
    refuted = [f"{each.said} ({each.what})" for each in claims if each.verdict == REFUTED]
    return f"{len(claims)} claims: {listed}. Refuted: {'; '.join(refuted) or 'none'}."
