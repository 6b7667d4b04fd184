"""The two tallies: secure sums that are what they say, and a curator's costs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.goodness import ALPHA_LIMIT, fit_p_value
from support.vote_rules import noise, rule, tallied

from earshot_models.votes.electorate import Electorate, electorate
from earshot_models.votes.rules.rule import UNITS, VoteKind, VotingRule
from earshot_models.votes.tally.interface import Purchase
from earshot_models.votes.tally.secure_sums import SecureSums, TeacherCrowd, draw_vanishing
from earshot_models.votes.tally.tallies import Counter, tally
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, TooManyDropoutsError
from earshot_protocol.privacy.events import Event, Pure, SkellamSum, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.noise import skellam_share
from earshot_protocol.voting.teacher_ballots import NONE, OneHot
from earshot_protocol.voting.vote_sums import VoteSum

QUIET = 1e-3
"""Noise so small that none of it is ever drawn in a test."""


def asked(
    counter: Counter, own: VotingRule, predictions: Any, classes: int = 10, **more: Any
) -> Any:
    table = np.asarray(predictions)
    voters = Electorate(table, table.shape[2] if own.several else classes)
    return tallied(counter, own, voters, **more)


def random_classes(teachers: int, queries: int, classes: int, seed: int = 0) -> Any:
    """Most teachers of one mind on the first queries, of many on the last."""
    generator = np.random.default_rng(seed)
    likely = generator.integers(0, classes, queries)
    spread = generator.random((teachers, queries)) < np.linspace(0, 1, queries)
    return np.where(spread, generator.integers(0, classes, (teachers, queries)), likely)


def histogram(column: Any, classes: int) -> list[int]:
    return [sum(1 for each in column if each == one) for one in range(classes)]


# ------------------------------------------------------------------------------- secure sums


def test_a_sum_is_the_survivors_ballots_and_their_own_noise_and_nothing_else() -> None:
    crowd = TeacherCrowd(10, dropout=0.3, corrupted=0.0)
    mechanism = VoteSum(OneHot(3), 5, 4.0, 1e-5, crowd.honest_survivors)
    inputs = np.random.default_rng(1).integers(0, 2, (10, 5, 3))
    gone = {"share keys": frozenset({4}), "masked input": frozenset({7}), "unmask": frozenset({1})}
    opened = SecureSums(crowd).run(mechanism, inputs, lambda each: noise("sum", each), gone)
    survivors = [0, 1, 2, 3, 5, 6, 8, 9]
    assert opened.survivors == tuple(survivors)
    shares = [
        skellam_share(16.0, crowd.honest_survivors, (5, 3), noise("sum", each))
        for each in survivors
    ]
    assert (opened.total == inputs[survivors].sum(axis=0) + sum(shares)).all()
    assert sum(shares).any()


def test_a_sum_refuses_when_more_teachers_vanish_than_it_allows_for() -> None:
    crowd = TeacherCrowd(9, dropout=0.12, corrupted=0.0)
    mechanism = VoteSum(OneHot(2), 1, 1.0, 1e-5, crowd.honest_survivors)
    gone = {"masked input": frozenset({0, 1})}
    with pytest.raises(TooManyDropoutsError):
        SecureSums(crowd).run(mechanism, np.zeros((9, 1, 2), int), noise, gone)


def test_the_noise_of_real_sums_has_the_law_that_is_claimed() -> None:
    """All teachers stay, so there are n/n' times as much: Skellam of that variance."""
    crowd = TeacherCrowd(8, dropout=0.13, corrupted=0.0)
    deviation, entries, sums = 3.0, 4000, 8
    mechanism = VoteSum(OneHot(2), entries // 2, deviation, 1e-5, crowd.honest_survivors)
    runs = SecureSums(crowd)
    drawn = []
    for number in range(sums):
        ones = np.tile([1, 0], (8, entries // 2, 1))
        opened = runs.run(mechanism, ones, lambda each, n=number: noise("law", n, each))
        drawn.append(opened.total - ones.sum(axis=0))
    samples = np.concatenate([each.ravel() for each in drawn])
    support = np.arange(-60, 61)
    rate = deviation**2 / 2 * 8 / crowd.honest_survivors
    assert fit_p_value(samples, stats.skellam.pmf(support, rate, rate), support) > ALPHA_LIMIT
    half = stats.skellam.pmf(support, rate / 2, rate / 2)
    assert fit_p_value(samples, half, support) < 1e-30


def test_vanishing_teachers_are_as_many_as_asked_for_and_never_more_than_allowed() -> None:
    crowd = TeacherCrowd(100, dropout=0.1)
    gone = draw_vanishing(crowd, 0.1, noise("who"))
    assert len(frozenset().union(*gone.values())) == 10 == sum(map(len, gone.values()))
    with pytest.raises(InvalidParametersError, match=r"at most the dropout of 0\.1"):
        draw_vanishing(crowd, 0.11, noise("who"))


# ------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("counter", list(Counter))
@pytest.mark.parametrize("name", ["gnmax", "lnmax"])
def test_without_noise_the_plurality_wins(counter: Counter, name: str) -> None:
    predictions = random_classes(9, 12, 4)
    deviation = QUIET if name == "gnmax" else 0.02
    found = asked(counter, rule(name, deviation), predictions, 4).ask(range(12))
    for query, answer in enumerate(found.outcomes.tolist()):
        votes = histogram(predictions[:, query], 4)
        assert votes[answer] == max(votes)
    assert found.bought == (Purchase(VoteKind.VOTES, 12),)


@pytest.mark.parametrize("counter", list(Counter))
def test_a_check_lets_pass_what_enough_teachers_agree_on(counter: Counter) -> None:
    predictions = random_classes(9, 30, 3)
    mechanism = rule("confident", QUIET, (6.5, QUIET))
    found = asked(counter, mechanism, predictions, at_once=30).ask(range(30))
    most = [max(histogram(predictions[:, query], 3)) for query in range(30)]
    assert [answer != NONE for answer in found.outcomes] == [each >= 7 for each in most]
    assert 3 < sum(each >= 7 for each in most) < 27
    paid = {each.kind: each.queries for each in found.bought}
    passed = sum(each >= 7 for each in most)
    assert paid == {
        VoteKind.CHECK: 30,
        # A server sees all counts before it knows on what to ask; a curator stops at the check.
        VoteKind.VOTES: passed if counter is Counter.CENTRAL else 30,
    }


def test_with_a_student_only_what_teachers_do_not_agree_on_goes_into_a_histogram() -> None:
    predictions = random_classes(9, 20, 3)
    votes = [histogram(predictions[:, query], 3) for query in range(20)]
    guess = np.array([each.index(max(each)) for each in votes])
    guess[:3] = (guess[:3] + 1) % 3  # the student is wrong, then has no idea
    scores = np.eye(3)[guess]
    scores[3] = 1 / 3
    mechanism = rule("interactive", QUIET, (5.5, QUIET), confidence=0.5)
    found = asked(Counter.FEDERATED, mechanism, predictions, 3, scores=scores).ask(range(20))
    agreed = [query for query in range(20) if query != 3 and votes[query][guess[query]] >= 6]
    check, full = found.sights
    assert (check.kind, full.kind) == (VoteKind.CHECK, VoteKind.VOTES)
    assert check.queries == tuple(each for each in range(20) if each != 3)
    assert full.queries == tuple(each for each in range(20) if each not in agreed)
    assert {0, 1, 2, 3} <= set(full.queries)
    for query, answer in enumerate(found.outcomes.tolist()):
        assert votes[query][answer] == max(votes[query])
    assert found.bought == (
        Purchase(VoteKind.CHECK, 19),
        Purchase(VoteKind.VOTES, 20 - len(agreed)),
    )


def several(seed: int = 3, teachers: int = 9, queries: int = 10, labels: int = 4) -> Any:
    generator = np.random.default_rng(seed)
    likely = generator.random((queries, labels)) < 0.4
    return (likely ^ (generator.random((teachers, queries, labels)) < 0.2)).astype(np.int8)


@pytest.mark.parametrize("counter", list(Counter))
def test_labels_win_with_more_than_half_of_the_votes(counter: Counter) -> None:
    predictions = several()
    outcomes = asked(counter, rule("binary", QUIET), predictions).ask(range(10)).outcomes
    for query in range(10):
        for label in range(4):
            votes = sum(int(each[query, label]) for each in predictions)
            assert outcomes[query, label] == int(2 * votes > 9)


@pytest.mark.parametrize("counter", list(Counter))
def test_clipped_votes_are_parts_of_votes(counter: Counter) -> None:
    predictions, tau = several(), 1.2
    mechanism = rule("tau", QUIET, tau=tau)
    outcomes = asked(counter, mechanism, predictions).ask(range(10)).outcomes
    differ = 0
    for query in range(10):
        for label in range(4):
            votes = 0.0
            for each in predictions[:, query]:
                size = math.sqrt(each.sum()) or 1.0
                votes += each[label] * min(1.0, tau / size)
            assert outcomes[query, label] == int(votes > 4.5)
            differ += int((predictions[:, query, label].sum() > 4.5) != (votes > 4.5))
    assert differ, "clipping changes something"


@pytest.mark.parametrize("counter", list(Counter))
def test_of_sets_the_one_that_most_teachers_cast_wins(counter: Counter) -> None:
    predictions = several(labels=3)
    mechanism = rule("powerset", QUIET, (3.5, QUIET))
    outcomes = asked(counter, mechanism, predictions).ask(range(10)).outcomes
    passed = 0
    for query in range(10):
        sets = [tuple(each[query].tolist()) for each in predictions]
        most = max(sets.count(each) for each in sets)
        if most < 4:
            assert (outcomes[query] == NONE).all()
        else:
            passed += 1
            assert sets.count(tuple(outcomes[query].tolist())) == most
    assert 0 < passed < 10


@pytest.mark.parametrize("counter", list(Counter))
def test_thresholds_and_their_check_of_the_largest_count(counter: Counter) -> None:
    predictions = several()
    fixed = rule("gnthreshold", QUIET, (7.5, QUIET), cut=2.5)
    outcomes = asked(counter, fixed, predictions).ask(range(10)).outcomes
    votes = predictions.sum(axis=0)
    for query in range(10):
        expected = [int(each > 2.5) for each in votes[query]]
        if max(votes[query]) < 8:
            expected = [NONE] * 4
        assert outcomes[query].tolist() == expected
    assert 0 < (outcomes == NONE).all(axis=1).sum() < 10
    adaptive = asked(counter, rule("gnthreshold-adaptive", QUIET), predictions).ask(range(10))
    for query in range(10):
        ordered = sorted(votes[query].tolist(), reverse=True)
        gaps = [high - low for high, low in itertools.pairwise(ordered)]
        # Of gaps that are equally wide noise chooses one.
        widest = [place for place, gap in enumerate(gaps, start=1) if gap == max(gaps)]
        winners = adaptive.outcomes[query].astype(bool)
        assert winners.sum() in widest
        assert votes[query][winners].min() > votes[query][~winners].max()


@pytest.mark.parametrize("counter", list(Counter))
def test_votes_weigh_and_noise_grows_with_the_mean_weight(counter: Counter) -> None:
    predictions = np.array([[0], [1], [1], [NONE]])
    weights = np.array([3, 1, 1, 3])
    made = asked(counter, rule("gnmax", QUIET), predictions, weights=weights)
    assert made.ask(range(1)).outcomes.tolist() == [0]
    assert (made.rule.sigma, made.heaviest) == (2 * QUIET, 3)
    gone = asked(counter, rule("gnmax", QUIET), predictions, weights=np.array([0, 1, 1, 2]))
    assert gone.ask(range(1)).outcomes.tolist() == [1]


def test_teachers_that_vanish_are_not_counted() -> None:
    predictions = np.zeros((40, 1), dtype=int)
    made = asked(Counter.FEDERATED, rule("gnmax", QUIET), predictions, vanishing=0.05)
    (seen,) = made.ask(range(1)).sights
    assert seen.total[0, 0] == seen.voters
    assert 38 <= seen.voters <= 40


# ------------------------------------------------------------------------------- costs


def shift(events: tuple[Event, ...]) -> tuple[float, float, float]:
    (event,) = events
    assert isinstance(event, SkellamSum)
    return event.variance, event.l1, event.l2


@pytest.mark.parametrize(
    ("own", "classes", "zeroed", "replaced"),
    [
        (rule("gnmax", 40.0), 10, (1, 1), (2, math.sqrt(2))),
        (rule("binary", 40.0), 10, (10, math.sqrt(10)), (10, math.sqrt(10))),
        (rule("powerset", 40.0, winners=2), 5, (1, 1), (2, math.sqrt(2))),
    ],
)
def test_a_sum_costs_what_one_teacher_can_change(
    own: VotingRule, classes: int, zeroed: tuple[float, float], replaced: tuple[float, float]
) -> None:
    shape = (9, 1, classes) if own.several else (9, 1)
    made = asked(Counter.FEDERATED, own, np.zeros(shape, dtype=int), classes)
    bought = [Purchase(VoteKind.VOTES, 200)]
    for unit, (l1, l2) in zip(UNITS, (zeroed, replaced), strict=True):
        expected = (1600.0, 200 * l1, math.sqrt(200) * l2)
        assert shift(made.events(bought, unit)) == pytest.approx(expected, rel=1e-12)


def test_a_check_costs_the_same_in_both_units_and_a_teacher_of_no_weight_nothing() -> None:
    mechanism = rule("confident", 40.0, (200, 150.0))
    weights = np.array([0, 1, 1, 2])
    made = asked(Counter.FEDERATED, mechanism, np.zeros((4, 1), int), weights=weights)
    for unit in UNITS:
        for weight in (1, 2):
            expected = (22500.0, 50.0 * weight, math.sqrt(50) * weight)
            found = shift(made.events([Purchase(VoteKind.CHECK, 50)], unit, weight))
            assert found == pytest.approx(expected, rel=1e-12)
        assert made.events(made.worst(3), unit, 0) == ()
        assert made.events(made.worst(3), unit) == made.events(made.worst(3), unit, 2)


def test_laplace_shares_cost_the_scale_times_all_queries() -> None:
    made = asked(Counter.FEDERATED, rule("lnmax", 20.0), np.zeros((9, 4), int))
    for unit, moved in ((Unit.PHONE, 1), (Unit.REPLACED_PHONE, 2)):
        (event,) = made.events([Purchase(VoteKind.VOTES, 4)], unit)
        assert (event.scale, event.sensitivity) == (20.0, 4 * moved)


def test_a_curator_pays_for_checks_and_for_answers() -> None:
    mechanism = rule("confident", 40.0, (200, 150.0))
    made = asked(Counter.CENTRAL, mechanism, np.zeros((3, 1), int))
    bought = [
        Purchase(VoteKind.CHECK, 64),
        Purchase(VoteKind.VOTES, 5),
        Purchase(VoteKind.VOTES, 2),
    ]
    rho = 64 / (2 * 150**2) + 7 / 40**2
    (event,) = made.events(bought, Unit.REPLACED_PHONE)
    assert isinstance(event, ZeroConcentrated)
    assert event.rho == pytest.approx(rho)
    (event,) = made.events(bought, Unit.PHONE)
    assert event.rho == pytest.approx(64 / (2 * 150**2) + 7 / (2 * 40**2))
    (event,) = made.events(bought, Unit.REPLACED_PHONE, 3)
    assert event.rho == pytest.approx(9 * rho)
    laplace = asked(Counter.CENTRAL, rule("lnmax", 20.0), np.zeros((3, 1), int))
    assert laplace.events([Purchase(VoteKind.VOTES, 7)], Unit.REPLACED_PHONE) == (Pure(0.1, 7),)
    assert laplace.events([Purchase(VoteKind.VOTES, 7)], Unit.PHONE) == (Pure(0.05, 7),)


# ------------------------------------------------------------------------------- bad input


def test_weights_and_scores_must_fit_the_teachers() -> None:
    mechanism = rule("gnmax", 1.0)
    for weights in ([1, 1], [1.0, 1.0, 1.0], [1, -1, 1], [0, 0, 0]):
        with pytest.raises(InvalidInputError, match="3 whole numbers"):
            asked(Counter.CENTRAL, mechanism, np.zeros((3, 1), int), weights=np.array(weights))
    counts = electorate(np.array([[2, 1]]), False)
    with pytest.raises(InvalidInputError, match="do not say who cast which"):
        tally(Counter.CENTRAL, mechanism, counts, np.ones(3, int), delta=1e-5, random=noise)
    nobody = np.zeros((3, 1), int)
    interactive = rule("interactive", 1.0, (2, 1.0), confidence=0.5)
    with pytest.raises(InvalidInputError, match="probabilities"):
        asked(Counter.CENTRAL, interactive, nobody, 2, scores=np.array([[0.5, 0.9]]))
    with pytest.raises(InvalidInputError, match="finite"):
        asked(Counter.CENTRAL, interactive, nobody, 2, scores=np.array([[0.5, np.nan]]))
    with pytest.raises(InvalidInputError, match="needs them"):
        asked(Counter.CENTRAL, interactive, np.zeros((3, 1), int))


def test_counts_do_not_say_what_stood_in_one_ballot() -> None:
    counts = electorate(np.array([[2, 1]]), True, teachers=3)
    for mechanism in (rule("tau", 1.0, tau=1.1), rule("powerset", 1.0)):
        with pytest.raises(InvalidInputError, match="which stood in one ballot"):
            tally(Counter.CENTRAL, mechanism, counts, delta=1e-5, random=noise)
