"""Verdicts on papers' claims, each with its reason in one line."""

from __future__ import annotations

import re

import pytest

from earshot_simulations.sweeps.estimate import Estimate
from earshot_studies.kit.claims import Claim, beside, claims_table

OTHER = "other sound"


@pytest.mark.parametrize(
    ("theirs", "mean", "wide", "verdict", "why"),
    [
        (0.5, 0.4, 0.2, "confirmed", "the interval includes theirs"),
        (0.6, 0.4, 0.2, "confirmed", "the interval includes theirs"),
        (0.7, 0.4, 0.2, "confirmed", "the size differs: other sound"),
        (-0.1, 0.4, 0.2, "confirmed", "the size differs: other sound"),
        (None, 0.4, 0.2, "confirmed", "the paper has no such number"),
        (0.5, 0.1, 0.2, "undecided", "the interval is too wide to tell; more seeds narrow it"),
        (0.5, -0.4, 0.2, "refuted", "the whole interval is against it: other sound"),
        (None, -0.4, 0.2, "refuted", "the whole interval is against it: other sound"),
        (0.5, 0.4, None, "one seed", "a single run has no interval"),
    ],
)
def test_a_verdict_has_its_reason(
    theirs: float | None, mean: float, wide: float | None, verdict: str, why: str
) -> None:
    claim = Claim("It helps", "with − without", theirs, Estimate(mean, wide, 3))
    assert (claim.verdict, claim.why(OTHER)) == (verdict, why)
    table = claims_table([claim], "They", OTHER)
    titles, _, row = (re.split(r" *\| *", line)[1:-1] for line in table.splitlines())
    assert titles == ["They", "difference", "theirs", "ours", "verdict", "why"]
    assert row[-2:] == [verdict, why]


def test_a_number_of_one_seed_has_what_differs_beside_it() -> None:
    assert beside(1.0, Estimate(1.0, None, 1), OTHER) == "the size differs: other sound"
