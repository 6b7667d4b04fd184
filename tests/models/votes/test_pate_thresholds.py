"""Votes against thresholds by both counters: textbook loops, costs, and what each refuses."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.command import earshot
from support.vote_rules import THRESHOLDS, rule, tallied

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.electorate import PollForm, electorate
from earshot_models.votes.output_ballots import STEPS
from earshot_models.votes.rules.rule import VoteKind, VotingRule
from earshot_models.votes.tally.interface import Purchase, times
from earshot_models.votes.tally.prospects import prospects, shares, table
from earshot_models.votes.tally.tallies import Counter
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import RenyiCurve, SkellamSum
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE

QUIET = 1e-3
GRID = (1.25, 3.5, 6.75)


def probabilities(teachers: int = 9, queries: int = 12, labels: int = 5) -> Any:
    generator = np.random.default_rng(5)
    there = generator.random((queries, labels)) < 0.4
    return generator.beta(0.4 + 3 * there, 3.4 - 3 * there, (teachers, queries, labels))


def asked(counter: Counter, own: VotingRule, votes: Any, **more: Any) -> Any:
    return tallied(counter, own, electorate(votes, True, fractions=True), **more)


def counted(votes: Any, most: int | None) -> list[list[float]]:
    """Sums of the teachers' largest outputs, to the nearest step, by hand."""
    teachers, queries, labels = votes.shape
    total = [[0.0] * labels for _ in range(queries)]
    for teacher, query in itertools.product(range(teachers), range(queries)):
        row = [round(each * STEPS) / STEPS for each in votes[teacher, query].tolist()]
        best = sorted(range(labels), key=lambda label: (-row[label], label))
        for label in best[: labels if most is None else most]:
            total[query][label] += row[label]
    return total


def limit(name: str, row: list[float]) -> float:
    if name == "gnthreshold":
        return 2.3
    if name == "grid-threshold":
        room = [min(abs(each - one) for each in [*row, 0.0, 9.0]) for one in GRID]
        return GRID[room.index(max(room))]
    ordered = sorted(row, reverse=True)
    gaps = [high - low for high, low in itertools.pairwise(ordered)]
    at = gaps.index(max(gaps))
    return (ordered[at] + ordered[at + 1]) / 2


def made(
    name: str, counter: Counter, check: tuple[float, float] | None = None, **more: Any
) -> VotingRule:
    own: dict[str, Any] = {}
    if name == "gnthreshold":
        own["cut"] = 2.3
    if name == "grid-threshold":
        own["grid"] = GRID
        own["scale"] = QUIET if counter is Counter.CENTRAL else None
    return rule(name, QUIET, check, **(own | more))


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("counter", list(Counter))
@pytest.mark.parametrize("name", THRESHOLDS)
def test_probabilities_add_up_and_labels_above_the_threshold_win(
    name: str, counter: Counter, most: int | None
) -> None:
    votes = probabilities()
    found = asked(counter, made(name, counter, winners=most), votes).ask(range(12))
    for query, row in enumerate(counted(votes, most)):
        expected = [int(each > limit(name, row)) for each in row]
        assert found.outcomes[query].tolist() == expected
    assert 0 < found.outcomes.sum() < found.outcomes.size
    assert found.bought == (Purchase(VoteKind.VOTES, 12),)
    assert len(found.sights) == (0 if counter is Counter.CENTRAL else 1)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_check_is_read_from_the_same_noisy_counts_or_paid_for(name: str) -> None:
    votes = probabilities()
    largest = [max(row) for row in counted(votes, None)]
    ordered = sorted(largest)
    clear = max(range(3, 9), key=lambda place: ordered[place] - ordered[place - 1])
    bar = (ordered[clear] + ordered[clear - 1]) / 2
    own = made(name, Counter.FEDERATED, threshold=bar)
    free = asked(Counter.FEDERATED, own, votes).ask(range(12))
    paid = asked(Counter.CENTRAL, made(name, Counter.CENTRAL, check=(bar, QUIET)), votes).ask(
        range(12)
    )
    for found in (free, paid):
        answered = [row[0] != NONE for row in found.outcomes.tolist()]
        assert answered == [each >= bar for each in largest]
        assert sum(answered) == 12 - clear
    np.testing.assert_array_equal(free.outcomes, paid.outcomes)
    # One sum, whose server could not skip anything: everything that was asked is paid for.
    assert free.bought == (Purchase(VoteKind.VOTES, 12),)
    assert [each.queries for each in paid.bought] == [12, int((paid.outcomes[:, 0] != NONE).sum())]


def test_thresholds_are_shares_of_those_who_stay() -> None:
    """All 40 say so, two vanish: 38 votes are as many as 40 of 40."""
    votes = np.ones((40, 3, 2), dtype=np.int8)
    mechanism = rule("gnthreshold", QUIET, cut=39.0, threshold=39.5)
    found = asked(Counter.FEDERATED, mechanism, votes, vanishing=0.05).ask(range(3))
    assert found.sights[0].voters < 40
    assert found.sights[0].total.max() < 39.0
    assert (found.outcomes == 1).all()


def test_noisy_counts_of_probabilities_have_the_noise_of_votes() -> None:
    """In steps, so noise is drawn in steps too: its deviation in votes is what was asked for."""
    mechanism = rule("gnthreshold", 3.0, winners=3)
    own = asked(Counter.FEDERATED, mechanism, np.full((20, 60, 20), 0.3))
    seen = own.ask(range(60)).sights[0]
    in_first = seen.total[:, :3].ravel() / STEPS - 20 * round(0.3 * STEPS) / STEPS
    rest = seen.total[:, 3:].ravel() / STEPS
    variance = 9.0 * 20 / own.sums.crowd.honest_survivors
    both = np.concatenate([in_first, rest])
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], len(both)) / len(both)
    assert low < both.var() / variance < high
    assert abs(both.mean()) < 5 * math.sqrt(variance / len(both))


@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_what_a_curator_and_what_a_sum_cost(unit: Unit) -> None:
    """Bits where a threshold is fixed; a check, a bit too, and a choice from a grid on top."""
    changed, delta = (3 if unit is Unit.PHONE else 6), 1e-5
    orders = np.arange(1.05, 60, 0.05)

    def epsilon(divergences: Any) -> float:
        more = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        return float((divergences + more).min())

    votes = np.zeros((9, 1, 20), dtype=np.int8)
    bought = (Purchase(VoteKind.CHECK, 400), Purchase(VoteKind.VOTES, 250))
    bits, noise = changed * bit_divergence(30.0, orders), orders * changed / 1800
    check, grid = bit_divergence(50.0, orders), orders / (2 * 40.0**2)
    for name, each in (
        ("gnthreshold", bits),
        ("gnthreshold-adaptive", noise),
        ("grid-threshold", bits + grid),
    ):
        more: dict[str, Any] = (
            {"grid": (2.0, 4.0), "scale": 40.0} if name == "grid-threshold" else {}
        )
        mechanism = rule(name, 30.0, (5, 50.0), winners=3, **more)
        own = asked(Counter.CENTRAL, mechanism, votes)
        (event,) = own.events(bought, unit)
        assert isinstance(event, RenyiCurve)
        expected = epsilon(400 * check + 250 * each)
        assert composed_epsilon((event,), delta) == pytest.approx(expected, rel=2e-3)
        assert own.events((), unit) == ()
    plain = rule("gnthreshold-adaptive", 30.0, winners=3, threshold=4.0)
    (summed,) = asked(Counter.FEDERATED, plain, votes).events(
        (Purchase(VoteKind.VOTES, 250),), unit
    )
    assert isinstance(summed, SkellamSum)
    assert summed.l2 == pytest.approx(math.sqrt(250 * changed))
    assert summed.l1 == 250 * changed
    assert composed_epsilon((summed,), delta) == pytest.approx(epsilon(250 * noise), rel=2e-2)


def test_the_printed_cost_stands_beside_and_is_less() -> None:
    mechanism = rule("gnthreshold", muschiol.deviation(0.3, 50), winners=3)
    bought = (Purchase(VoteKind.VOTES, 2000),)
    assert round(mechanism.claimed_epsilon(times(bought), 1e-8) or 0, 1) == 418.4
    adaptive = rule("gnthreshold-adaptive", 40.0, (5, 60.0))
    for counter in Counter:
        ready = prospects(counter, adaptive, 20, 1e-6, np.ones(50, dtype=np.int64), answered=0.5)
        rows = table(ready, shares(None, 50), 100)
        both = (Purchase(VoteKind.CHECK, 100), Purchase(VoteKind.VOTES, 50))
        if counter is Counter.FEDERATED:  # whose counts are seen before any check
            both = (Purchase(VoteKind.CHECK, 100), Purchase(VoteKind.VOTES, 100))
        for row in rows:
            assert row["as_printed"] == adaptive.claimed_epsilon(times(both), 1e-6)
            assert row["as_printed"] < row["epsilon"]  # type: ignore[operator]
    with pytest.raises(InvalidParametersError, match="buys no query: one costs ε = "):
        table(ready, shares(None, 50, 1e-4), None)
    other = prospects(Counter.CENTRAL, rule("binary", 40.0), 5, 1e-6, np.ones(50, np.int64))
    assert table(other, shares(None, 50), 10)[0]["as_printed"] is None


def test_how_likely_noise_passes_a_bar_by_itself() -> None:
    free = rule("gnthreshold-adaptive", 10.0, threshold=25.0)
    assert free.passes_by_chance(PollForm(20, 50), 50) == pytest.approx(
        1 - stats.norm.cdf(2.5) ** 20
    )
    own = rule("gnthreshold", 10.0, (25.0, 10.0))
    assert own.passes_by_chance(PollForm(20, 50), 50) == pytest.approx(stats.norm.sf(2.5))


def test_votes_that_do_not_fit_are_refused() -> None:
    votes = probabilities()
    with pytest.raises(InvalidParametersError, match="neither yes nor no"):
        asked(Counter.FEDERATED, rule("gnthreshold-adaptive", 1.0, (2, 1.0)), votes)
    with pytest.raises(InvalidInputError, match="must be whole numbers"):
        electorate(votes, True)
    for wrong in (votes - 1, votes * np.nan, votes + 0.5):
        with pytest.raises(InvalidInputError, match="from 0 to 1"):
            electorate(wrong, True, fractions=True)
    dealt = electorate(np.array([[3, 2, 1]]), True, teachers=4)
    with pytest.raises(InvalidInputError, match="which stood in one ballot"):
        tallied(Counter.CENTRAL, rule("gnthreshold-adaptive", 1.0, winners=2), dealt)


@pytest.mark.parametrize("counter", list(Counter))
def test_label_takes_probabilities_and_says_what_was_printed(
    counter: Counter, tmp_path: Path
) -> None:
    votes, out = tmp_path / "votes.npy", tmp_path / "out"
    there = np.random.default_rng(2).random((30, 6)) < 0.3
    there[0] = False
    there[1:, 0] = True
    np.save(votes, np.tile(np.where(there, 0.98, 0.01).astype(np.float32), (40, 1, 1)))
    check: tuple[Any, ...] = ("--threshold", 20)
    if counter is Counter.CENTRAL:
        check += ("--check-sigma", 3)
    command: tuple[Any, ...] = (
        *("pate", "label", "gnthreshold-adaptive", votes, "--sigma", 3),
        *("--winners", 6, "--epsilon", 50, "--delta", "1e-3", "--tally", counter.value),
        *(*check, "--out", out),
    )
    ran = earshot(*command)
    assert ran.returncode == 0, ran.stderr
    with (out / "answers.csv").open() as file:
        rows = [row[1:] for row in csv.reader(file)][1:]
    assert rows[0] == [""] * 6, "nobody named anything"
    expected = [[str(int(each)) for each in row] for row in there.tolist()]
    assert 15 < len(rows) <= 30, "the budget has room for some"
    right = sum(row == other for row, other in zip(rows[1:], expected[1:], strict=False))
    assert right >= len(rows) - 3
    figures, report = json.loads((out / "result.json").read_text()), (out / "report.md").read_text()
    figures = figures["realised"]
    assert figures["as_printed"] < figures["costs"][0]["epsilon"]["teacher left out"]
    why = "a teacher that is trained anew may change all of its labels, not 3 at most"
    assert f"{figures['as_printed']:.4g}; does not hold: {why}" in ran.stdout
    assert f"**It does not hold**: {why}" in report
    assert earshot(*command).returncode == 0, "the same labelling"
    other = earshot(*command[:-2], "--winners", 5, "--out", out)
    assert other.returncode == 2
    assert "winners 6, not 5" in other.stderr


def test_a_budget_that_buys_no_query_is_refused_before_any_vote_is_counted(
    tmp_path: Path,
) -> None:
    votes, out = tmp_path / "votes.npy", tmp_path / "out"
    np.save(votes, probabilities())
    for counter, more in (("central", ("--scale", 3)), ("federated", ())):
        command: tuple[Any, ...] = (
            *("pate", "label", "grid-threshold", votes, "--grid", "2,4,6"),
            *("--sigma", 3, "--epsilon", 0.1, "--delta", "1e-3", "--tally", counter),
            *(*more, "--out", out / counter),
        )
        refused = earshot(*command)
        assert refused.returncode == 2
        assert "has no room for a query" in refused.stderr
        assert not (out / counter / "answers.csv").exists()
    words = ("pate", "label", "grid-threshold", votes, "--grid", "2,x")
    more = ("--sigma", 3, "--epsilon", 1, "--delta", "1e-3", "--out", out / "other")
    refused = earshot(*words, *more)
    assert refused.returncode == 2
    assert "must be numbers of votes by commas" in refused.stderr


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_cost_by_votes_is_published_once_with_its_noise(name: str, tmp_path: Path) -> None:
    votes, out = tmp_path / "votes.npy", tmp_path / "out"
    there = np.random.default_rng(2).random((60, 4)) < 0.5
    np.save(votes, np.tile(np.where(there, 0.97, 0.01), (200, 1, 1)))
    command: tuple[Any, ...] = (
        *("pate", "label", name, votes, "--sigma", 9, "--epsilon", 20),
        *("--threshold", 120, "--check-sigma", 12, "--delta", "1e-4", "--winners", 4),
        *(("--grid", "60,140", "--scale", 25) if name == "grid-threshold" else ()),
        *("--votes-cost", "dependent", "--out", out),
    )
    assert earshot(*command).returncode == 0
    figures = json.loads((out / "result.json").read_text())
    published = figures["data_dependent"]
    assert (published["method"], published["delta"]) == ("dependent", 1e-4)
    assert published["epsilon"] >= 0
    assert 0 < published["publishing"] <= 0.1 * 20 * (1 + 1e-9)
    assert earshot(*command).returncode == 0
    assert json.loads((out / "result.json").read_text())["data_dependent"] == published
    exact = [word if word != "dependent" else "exact" for word in command]
    refused = earshot(*exact[:-1], tmp_path / "other")
    assert refused.returncode == 2
    assert "without weights, not for" in refused.stderr
