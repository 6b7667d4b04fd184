"""The published vectors of labelling phases, worked out again from the document alone."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import msgspec
import pytest
from support import textbook_cells as textbook
from support.precision import digits

from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.conversions import secure_sum_delta

_precise = digits(50)
VECTORS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "vectors" / "labelling.json").read_text("utf-8")
)
ANSWERS, TOTALS = VECTORS["answers"], VECTORS["totals"]
LABELS = range(len(TOTALS["votes"][0]))


@pytest.mark.parametrize("weight", [0, 1, 3])
def test_ballots(weight: int) -> None:
    votes = [[weight * (answer == label) for label in LABELS] for answer in ANSWERS]
    assert VECTORS["ballots"][str(weight)] == votes
    agrees = zip(ANSWERS, VECTORS["proposed"], strict=True)
    agreement = [[weight * (answer == proposed)] for answer, proposed in agrees]
    assert VECTORS["agreement_ballots"][str(weight)] == agreement


def test_proposals_and_answers() -> None:
    assert VECTORS["proposed"] == [votes.index(max(votes)) for votes in TOTALS["votes"]]
    answered = zip(VECTORS["proposed"], TOTALS["check"], strict=True)
    assert VECTORS["labels"] == [
        label if agreed >= TOTALS["threshold"] else -1 for label, agreed in answered
    ]
    assert -1 in VECTORS["labels"]


def at_least(value: int, variance: Any) -> Any:
    """P(X − Y ≥ value) with X, Y ~ Poisson(variance/2), by the Bessel functions of its law."""
    spread = int(12 * mpmath.sqrt(variance)) + 12
    return mpmath.exp(-variance) * mpmath.fsum(
        mpmath.besseli(abs(k), variance) for k in range(value, max(value, 0) + spread)
    )


@pytest.mark.slow
def test_p_values() -> None:
    inputs, survivors = TOTALS["inputs"], VECTORS["sums"][0]["honest_survivors"]
    votes, check = (
        mpmath.mpf(VECTORS["sums"][0]["parameters"][name]) ** 2 * inputs / survivors
        for name in ("votes_noise", "check_noise")
    )
    samples = zip(TOTALS["votes"], TOTALS["check"], VECTORS["p_values"], strict=True)
    for counts, agreed, p_value in samples:
        runner_up = sorted(counts)[-2]
        chance = max(at_least(agreed, check), 2 * at_least(agreed - runner_up, votes + check))
        assert p_value == pytest.approx(float(min(1, len(TOTALS["votes"]) * chance)), abs=1e-11)
    assert VECTORS["p_values"][0] < 1e-9 < VECTORS["p_values"][2]


@pytest.mark.parametrize("case", VECTORS["sums"])
def test_noise_and_bound_of_a_sum(case: dict[str, Any]) -> None:
    given = case["parameters"]
    crowd = math.ceil(round((1 - given["dropout"] - given["corrupted"]) * given["phones"], 6))
    assert case["honest_survivors"] == crowd
    votes = case["part"] == "votes"
    samples = given["samples"]["rows"]
    assert case["shape"] == [samples, len(given["labels"]) if votes else 1]
    assert case["variance"] == given["votes_noise" if votes else "check_noise"] ** 2
    probability = Fraction(2.0**-80 / (given["phones"] * math.prod(case["shape"])))
    rate = case["variance"] / (2 * crowd)
    largest = given.get("largest_weight", 1)
    assert case["sum"]["bound"] == largest + textbook.share_bound(rate, probability)
    parameters = msgspec.convert(given, AnyParameters)
    part = parameters.plan().part(case["part"])
    assert isinstance(part, SecureSum)
    derived = msgspec.to_builtins(parameters.sum_parameters(part, tuple(case["shape"])))
    assert derived == case["sum"] | {"shape": tuple(case["shape"])}


@pytest.mark.parametrize("case", VECTORS["costs"], ids=lambda case: f"weight {case['weight']}")
def test_what_a_weight_costs(case: dict[str, Any]) -> None:
    given, weight = case["parameters"], case["weight"]
    samples, delta = given["samples"]["rows"], given.get("delta", 1e-6)
    assert [(each["release"]["step"], each["release"]["unit"]) for each in case["expenses"]] == [
        (step, unit) for step in ("votes", "check") for unit in ("recording", "phone")
    ]
    for each in case["expenses"]:
        release, event = each["release"], each["event"]
        if weight == 0:
            assert (release["epsilon"], release["delta"]) == (0.0, 0.0)
            assert event == {"event": "pure", "epsilon": 0.0, "times": 1}
            continue
        moved = 2 if (release["step"], release["unit"]) == ("votes", "recording") else 1
        assert event["l1"] == weight * moved * samples
        assert event["l2"] == pytest.approx(weight * math.sqrt(moved * samples), rel=1e-14)
        noise = given["votes_noise" if release["step"] == "votes" else "check_noise"]
        assert event["variance"] == noise**2
        assert release["delta"] == delta
        expected = skellam_epsilon(event["variance"], event["l1"], event["l2"], delta)
        assert release["epsilon"] == pytest.approx(expected, rel=1e-3)


def skellam_epsilon(variance: float, l1: float, l2: float, delta: float) -> float:
    """By the formulas of section 8, at whole orders to a thousand."""
    left = delta
    for _ in range(50):  # what the secure sum takes of δ depends on ε
        least = min(
            order * l2**2 / (2 * variance)
            + min(((2 * order - 1) * l2**2 + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance))
            + math.log1p(-1 / order)
            - math.log(left * order) / (order - 1)
            for order in range(2, 1000)
        )
        left = delta - secure_sum_delta(least)
    return least
