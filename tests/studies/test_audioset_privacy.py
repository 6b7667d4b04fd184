"""Costs of Muschiol (2021) reproduced: each figure against what is worked out apart, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.reproduced import reproduced

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method, epsilon
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.sweeps.estimate import Estimate
from earshot_studies.kit.claims import Claim
from earshot_studies.muschiol import privacy
from earshot_studies.muschiol.privacy import (
    LESS,
    NAME,
    ORDERS,
    PUBLIC,
    SOUND,
    TABLE_5_4,
    HeldStatement,
    PrivacyPlan,
    SampleVotes,
    averages,
    cheapest,
    distribution,
    fits,
    measure,
    reproduce,
    rule,
    statements,
    table_row,
)


def probabilities(seed: int, queries: int = 80, labels: int = 6) -> tuple[Any, Any]:
    """Of 50 teachers: most of one mind on some labels, of many on others."""
    generator = np.random.default_rng(seed)
    truth = (generator.random((queries, labels)) < 0.3).astype(np.int8)
    hard = generator.normal(0, 1.5, (queries, labels))
    logits = 5.0 * truth - 4 + hard + generator.normal(0, 1.5, (50, queries, labels))
    return (1 / (1 + np.exp(-logits))).astype(np.float32), truth


@pytest.fixture(scope="module")
def ensemble() -> SampleVotes:
    return SampleVotes.of(*probabilities(3))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [
        row
        for seed in (3, 4)
        for row in measure(SampleVotes.of(*probabilities(seed, queries=20)), seed)
    ]


def test_votes_are_sums_of_probabilities_and_of_the_three_largest() -> None:
    outputs, truth = probabilities(1, queries=5)
    made = SampleVotes.of(outputs, truth)
    for query in range(5):
        cut = np.zeros(6)
        for teacher in range(50):
            for label in sorted(range(6), key=lambda each: -outputs[teacher, query, each])[:3]:
                cut[label] += outputs[teacher, query, label]
        np.testing.assert_allclose(made.cut[query], cut)
        np.testing.assert_allclose(made.votes[query], outputs[:, query].sum(axis=0), rtol=1e-6)


def test_claims_are_those_of_the_accounting_for_as_many_answers(ensemble: SampleVotes) -> None:
    """Without a check nothing is drawn: 80 queries, 25 times, are `muschiol.claim` of 2,000."""
    for threshold in ("0.2", "0.4", "adaptive"):
        row = table_row(ensemble, (threshold, ""), 0)
        votes = np.tile(ensemble.votes, (25, 1))  # 2,000 answers
        direct = muschiol.claim(rule((threshold, "")), votes)
        assert row["claimed"] == pytest.approx(direct.dependent)
        assert row["q"] == pytest.approx(direct.q)
        assert round(float(row["claimed_independent"]), 1) == 418.4
        assert round(float(row["claimed_independent_5000"]), 1) == 1018.4


def test_a_checked_answer_pays_for_the_checks_that_it_takes(ensemble: SampleVotes) -> None:
    row = table_row(ensemble, ("0.4", "0.6"), 0)
    share = float(row["answered_share"])
    assert 0.1 < share < 0.95
    own = rule(("0.4", "0.6"))
    assert row["claimed_independent"] == muschiol.independent(own, round(2000 / share), 2000)
    assert float(row["claimed"]) < float(row["claimed_independent"])
    assert float(row["claimed_asked"]) < float(row["claimed"])


def test_what_holds_is_the_accounting_of_the_rule_that_holds(ensemble: SampleVotes) -> None:
    row = table_row(ensemble, ("0.4", ""), 0)
    sigma = muschiol.deviation(0.3, 50)
    for name, unit, changed, votes in (
        ("left_out", Unit.PHONE, 3, ensemble.cut),
        ("replaced", Unit.REPLACED_PHONE, 6, ensemble.cut),
        ("uncut", Unit.REPLACED_PHONE, 6, ensemble.votes),
    ):
        bits = 2000 * changed * bit_divergence(sigma, ORDERS)
        assert row[f"{name}_independent"] == pytest.approx(epsilon(bits, ORDERS, 1e-8)[0])
        voting = GNThresholdRule(sigma=sigma, cut=20.0, winners=None if name == "uncut" else 3)
        each = voting.divergences(votes, 50, ORDERS, Method.EXACT, unit).answered
        spent = 2000 * each.mean(axis=0)
        assert row[f"{name}_exact"] == pytest.approx(epsilon(spent, ORDERS, 1e-8)[0])
        assert row[f"{name}_exact"] <= row[f"{name}_dependent"] <= row[f"{name}_independent"]
    assert row["left_out_independent"] == pytest.approx(223.1, abs=0.05)


@pytest.mark.parametrize("threshold", ["0.4", "adaptive"])
def test_every_sample_is_in_one_bucket_of_q(ensemble: SampleVotes, threshold: str) -> None:
    found = list(distribution(ensemble, threshold, 0))
    assert sum(float(row["answered_share"]) for row in found) == pytest.approx(1)
    q = np.exp(rule((threshold, ""), 0.4).log_q(ensemble.votes))
    upper = [float(row["q"]) for row in found]
    for row, low, high in zip(found[1:], upper, upper[1:], strict=False):
        assert row["answered_share"] == pytest.approx(((q > low) & (q <= high)).mean())
        assert float(row["sound_share"]) <= float(row["answered_share"])


def test_which_formula_the_printed_checks_come_from() -> None:
    """Asked samples, one noise each: one share a threshold, near the share of Table 5.3."""
    for check, printed in (("0.4", 0.60), ("0.6", 0.44)):
        found = [row for row in fits() if row["th_c"] == check]
        assert len(found) == 6
        asked = [float(row["λ/2σ_c² asked"]) for row in found]
        assert max(asked) - min(asked) < 0.02
        assert all(abs(each - printed) < 0.05 for each in asked)
        assert all(float(row["3λ/2σ_c² asked"]) > 1 for row in found), "no share at all"
    unanswered = [float(row["3λ/2σ_c² unanswered"]) for row in fits() if row["th_c"] == "0.6"]
    assert min(unanswered) > 0.44 + 0.1
    for row in fits():
        if not row["th_c"]:
            assert row["printed"] == row["without_check"], "to the printed digit"


def test_statements_are_ratios_of_rows_and_verdicts_their_intervals(rows: Any) -> None:
    found = statements(rows)
    by_hand = [
        next(r["claimed"] for r in rows if (r["th_e"], r["th_c"], r["seed"]) == ("0.4", "0.6", s)
             and r["table"] == "5.4")
        / next(r["claimed"] for r in rows if (r["th_e"], r["th_c"], r["seed"]) == ("0.4", "", s)
               and r["table"] == "5.4")
        for s in (3, 4)
    ]  # fmt: skip
    (one,) = [each for each in found if each.claimed.what == "0.4 + 0.6 / 0.4"]
    assert one.claimed.ours.mean == pytest.approx(np.mean(by_hand))
    assert one.claimed.theirs == pytest.approx(1.294, abs=1e-3)
    assert {
        each.claimed.theirs for each in found if each.claimed.what == "adaptive + 0.6 / adaptive"
    } == {180.2 / 269.9}
    least = cheapest(rows, SOUND)
    costs = {
        setting: np.mean(
            [r[SOUND] for r in rows if r["table"] == "5.4" and (r["th_e"], r["th_c"]) == setting]
        )
        for setting in PUBLIC
    }
    assert least.setting == min(costs, key=lambda each: costs[each])
    assert least.ratio.mean >= 1


@pytest.mark.parametrize(
    ("mean", "wide", "verdict"),
    [
        (0.9, 0.05, "confirmed"),
        (0.9, 0.15, "undecided"),
        (1.2, 0.1, "refuted"),
        (0.9, None, "one ensemble"),
    ],
)
def test_a_verdict_needs_the_whole_interval(mean: float, wide: float | None, verdict: str) -> None:
    own = Claim("", "", None, Estimate(mean, wide, 5), LESS, LESS, "one ensemble")
    assert own.verdict == verdict
    assert HeldStatement(own, None).sound_verdict == "–"
    assert HeldStatement(own, own).sound_verdict == verdict
    assert HeldStatement(own, own).row()["why"] == own.why(
        "costs by votes depend on the votes, and ours are of other sound"
    )
    opposite = own._replace(ours=Estimate(1.5, 0.1, 5))
    differ = verdict != "refuted"
    assert HeldStatement(own, opposite).why.startswith("soundly it differs") == differ


def test_means_stand_beside_what_is_printed(rows: Any) -> None:
    found = {(row["th_e"], row["th_c"]): row for row in averages(rows) if row["table"] == "5.4"}
    assert set(found) == set(PUBLIC)
    for setting, printed in TABLE_5_4[2000].items():
        row = found[setting]
        assert (row["theirs"], row["theirs_q"]) == (printed.dependent, printed.q)
        own = [r["claimed"] for r in rows if r["table"] == "5.4"
               and (r["th_e"], r["th_c"]) == setting]  # fmt: skip
        assert row["claimed"] == pytest.approx(np.mean(own))
        assert row["seeds"] == 2
    assert found["grid", "0.6"]["claimed"] == ""


def test_a_seed_that_was_measured_is_not_measured_again(
    rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        privacy,
        "measure",
        lambda ensemble, seed, told: [row | {"seed": seed} for row in rows if row["seed"] == 3],
    )
    asked = []

    def ensemble(seed: int) -> SampleVotes:
        asked.append(seed)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return SampleVotes.of(*probabilities(seed, queries=30))

    with pytest.raises(KeyboardInterrupt):
        reproduce(PrivacyPlan(ensemble, "Made up.", "key", tmp_path, 2))
    outcome = reproduce(PrivacyPlan(ensemble, "Made up.", "key", tmp_path, 2))
    assert asked == [1, 2, 2]
    assert "Made up." in outcome.note
    reproduce(PrivacyPlan(ensemble, "Made up.", "key", tmp_path, 2))
    assert len(asked) == 3
    with pytest.raises(InvalidParametersError, match="seeds"):
        PrivacyPlan(ensemble, "", "key", tmp_path, 0)


@pytest.mark.slow
def test_the_command_leaves_a_table_a_picture_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked:
        def __init__(self, seed: int) -> None:
            self.probabilities, self.truth = probabilities(seed, queries=40)

    class Scores:
        def __init__(self, seed: int) -> None:
            self.queries = Asked(seed)

    monkeypatch.setattr(privacy, "prepared", lambda study, teachers, seed, *more: Scores(seed))
    out = tmp_path / "out"
    table = reproduced(NAME, out, "--data", tmp_path, "--seeds", 2, "--queries", 30)
    assert {row["table"] for row in table} == {"5.4", "5.13", "5.14", "5.15", "5.16"}
    note = (out / f"{NAME}.md").read_text(encoding="utf-8")
    assert "claimed 2.8, measured" in note
    assert "91.8" in note
    assert note.count("| 0.2 | – | 418.4 | ") == 1
    assert (out / f"{NAME}.png").stat().st_size > 30_000
