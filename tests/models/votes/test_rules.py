"""The contract that every rule keeps, whatever it is: one table of cases, all rules."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest
from support.vote_rules import rule, tallied

from earshot_models.votes.costs.releases import VotesCost
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.rule import UNITS, VoteKind, VotingRule
from earshot_models.votes.rules.table import RULES
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.interface import Purchase
from earshot_models.votes.tally.labelling import LabellingRequest
from earshot_models.votes.tally.tallies import Counter, tally
from earshot_protocol.errors import EarshotError, InvalidParametersError
from earshot_protocol.privacy.divergences import ORDERS, renyi
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE, Weighted

QUIET = 1e-3
"""Noise so small that none of it is ever drawn in a test."""
TEACHERS, QUERIES, LABELS = 9, 10, 4
CHECK = (6.5, QUIET)
CASES: dict[str, dict[str, Any]] = {
    "lnmax": {},
    "gnmax": {},
    "confident": {"check": CHECK},
    "interactive": {"check": CHECK, "confidence": 0.9},
    "binary": {},
    "binary checked": {"check": CHECK},
    "tau": {"tau": 1.2},
    "tau norm 1": {"tau": 1.4, "norm": 1},
    "powerset": {},
    "powerset checked": {"check": (3.5, QUIET)},
    "gnthreshold": {"winners": 2, "cut": 2.5},
    "gnthreshold checked": {"check": (7.5, QUIET)},
    "gnthreshold-adaptive": {},
    "grid-threshold": {"grid": (2.25, 5.75)},
}
"""Options of each rule beside its noise; together they name every rule."""
POLL = PollForm(LABELS, TEACHERS)
Case = pytest.mark.parametrize("case", list(CASES))


def made(case: str, counter: Counter = Counter.CENTRAL, sigma: float = QUIET) -> VotingRule:
    """Return a rule; its other noise is as large."""
    options = dict(CASES[case])
    if options.get("check") is not None:
        options["check"] = (options["check"][0], sigma)
    if "grid" in options and counter is Counter.CENTRAL:
        options["scale"] = sigma
    return rule(case.split()[0], sigma, **options)


def answers(own: VotingRule) -> Any:
    """Return all that a teacher may answer to one query."""
    if not own.several:
        return np.arange(NONE, LABELS)
    return np.array(list(itertools.product((0, 1), repeat=LABELS)))


def crowd(own: VotingRule) -> Electorate:
    """Return teachers that are of one mind on the first queries, and of many on the last."""
    generator = np.random.default_rng(3)
    spread = np.linspace(0, 0.6, QUERIES)
    if not own.several:
        likely = generator.integers(0, LABELS, QUERIES)
        apart = generator.random((TEACHERS, QUERIES)) < spread
        cast = np.where(apart, generator.integers(0, LABELS, apart.shape), likely)
        return Electorate(cast, LABELS)
    labels = generator.random((QUERIES, LABELS)) < 0.4
    apart = generator.random((TEACHERS, QUERIES, LABELS)) < spread[:, None]
    return Electorate((labels ^ apart).astype(np.int8), LABELS)


def asked(case: str, counter: Counter, sigma: float = QUIET) -> Any:
    """Return the tally of a crowd."""
    own = made(case, counter, sigma)
    scores = np.full((QUERIES, LABELS), 1 / LABELS) if own.takes_scores else None
    return tallied(counter, own, crowd(own), scores=scores)


def _nothing(*names: object) -> Any:
    raise AssertionError("no noise is drawn")


def test_every_rule_is_among_the_cases() -> None:
    assert {case.split()[0] for case in CASES} == set(RULES)
    assert all(name == kind.name for name, kind in RULES.items())


@Case
def test_a_rule_is_a_frozen_value_of_its_options(case: str) -> None:
    own = made(case)
    assert own == made(case)
    assert hash(own) == hash(made(case))
    with pytest.raises(FrozenInstanceError):
        own.sigma = 2.0  # type: ignore[misc]
    assert all(each.kw_only for each in fields(own))


@Case
def test_ballots_keep_within_their_norms(case: str) -> None:
    own = made(case)
    for ballot in (own.ballot(POLL), Weighted(own.ballot(POLL), 3)):
        cast = ballot.cast(answers(own)).reshape(-1, ballot.length)
        apart = (cast[:, None] - cast[None]).reshape(-1, ballot.length)
        for unit, change in ((Unit.PHONE, cast), (Unit.REPLACED_PHONE, apart)):
            assert np.abs(change).sum(axis=1).max() <= ballot.l1(unit) * (1 + 1e-12)
            assert np.linalg.norm(change, axis=1).max() <= ballot.l2(unit) * (1 + 1e-12)


@Case
def test_check_ballots_are_of_what_teachers_agree_with(case: str) -> None:
    own = made(case)
    voters = crowd(own)
    ballot = own.check_ballot(POLL)
    proposed = voters.predictions[0]
    totals = ballot.cast(own.agreeing(POLL, voters.predictions, own.proposed(proposed, proposed)))
    assert totals.shape == (TEACHERS, QUERIES, ballot.length)
    assert 0 <= totals.min() <= totals.max() <= 1


@Case
def test_without_noise_curator_and_secure_sum_say_the_same(case: str) -> None:
    central, federated = (asked(case, counter) for counter in Counter)
    found, seen = (each.ask(range(QUERIES)).outcomes for each in (central, federated))
    if federated.proposals is not None:  # no student's answer is proposed: all are counted
        votes = _counted(central)
        assert (np.take_along_axis(votes, seen[:, None], axis=1)[:, 0] == votes.max(axis=1)).all()
        return
    clear = _clear(central)
    assert clear.sum() >= QUERIES // 2
    assert (found == seen)[clear].all()


def _counted(central: Any) -> Any:
    """Return the votes of every class or label, by adding up ballots."""
    ballots = central.rule.ballot(POLL) if not central.rule.several else Approval(LABELS)
    return ballots.cast(central.voters.predictions).sum(axis=0)


def _clear(central: Any) -> Any:
    """Return the queries that noise does not decide: neither ties nor gaps of the same width."""
    votes = _counted(central)
    ordered = -np.sort(-votes, axis=1)
    if not central.rule.several:
        return ordered[:, 0] > ordered[:, 1]
    gaps = -np.sort(np.diff(ordered, axis=1), axis=1)
    counts = [
        -np.sort(-np.unique(each, axis=0, return_counts=True)[1])
        for each in central.voters.predictions.transpose(1, 0, 2)
    ]
    alone = np.array([len(each) == 1 or each[0] > each[1] for each in counts])
    return (gaps[:, 0] > gaps[:, 1]) & alone


@Case
def test_unanimous_teachers_are_answered_with_what_they_say(case: str) -> None:
    """The last query of a labelling is as clear as the first; nothing but noise could differ."""
    for counter in Counter:
        own = made(case, counter)
        said = 2 if not own.several else np.array([1, 0, 0, 1])
        shape = (TEACHERS, 1) if not own.several else (TEACHERS, 1, LABELS)
        voters = Electorate(np.broadcast_to(said, shape).astype(np.int64), LABELS)
        scores = np.full((1, LABELS), 1 / LABELS) if own.takes_scores else None
        found = tallied(counter, own, voters, scores=scores).ask(range(1))
        expected = np.asarray(said)
        if case == "tau norm 1":  # of ballots that are clipped to 1.4 / 2 each
            expected = np.array([1, 0, 0, 1])
        assert (found.outcomes[0] == expected).all()


@pytest.mark.parametrize("counter", list(Counter))
@Case
def test_the_worst_case_is_no_less_than_what_is_realised(case: str, counter: Counter) -> None:
    made_ = asked(case, counter, sigma=20.0)
    own = QueryBudget(50.0, 1e-5, Unit.REPLACED_PHONE, TEACHERS)
    bought = made_.ask(range(QUERIES)).bought
    for unit in UNITS:
        worst = own.spent(made_, made_.worst(QUERIES), unit)
        assert 0 < own.spent(made_, bought, unit) <= worst * (1 + 1e-12)


@pytest.mark.parametrize("unit", UNITS)
@Case
def test_queries_cost_in_proportion_to_their_number(case: str, unit: Unit) -> None:
    """By a curator, for whom all queries are one event at most a kind of noise."""
    own = made(case, sigma=20.0)

    def curve(times: int) -> Any:
        events = own.curator_events(POLL, dict.fromkeys(VoteKind, times), unit, 1)
        return np.sum([renyi(each, ORDERS) for each in events], axis=0)

    np.testing.assert_allclose(curve(7), 7 * curve(1), rtol=1e-9)
    assert own.curator_events(POLL, dict.fromkeys(VoteKind, 0), unit, 1) == ()


@Case
def test_a_heavier_teacher_pays_more_and_one_of_no_weight_nothing(case: str) -> None:
    own = asked(case, Counter.FEDERATED, sigma=20.0)
    for bought in (Purchase(VoteKind.VOTES, 3), Purchase(VoteKind.CHECK, 3)):
        if bought.kind is VoteKind.CHECK and own.rule.check is None:
            continue
        light, heavy = (own.events([bought], Unit.PHONE, weight) for weight in (1, 3))
        assert own.events([bought], Unit.PHONE, 0) == ()
        one, three = (
            np.sum([renyi(each, ORDERS) for each in some], axis=0) for some in (light, heavy)
        )
        assert (three > one).all()


@Case
def test_noise_and_thresholds_grow_with_the_votes(case: str) -> None:
    own = made(case, Counter.FEDERATED, 2.0)
    grown = own.times(1.5)
    assert grown.sigma == 3.0
    assert type(grown) is type(own)
    if own.check is not None and grown.check is not None:
        assert grown.check.threshold == 1.5 * own.check.threshold
        assert grown.check.deviation == 1.5 * own.check.deviation
    assert own.times(1.0) == own


@Case
def test_the_identity_of_a_journal_is_plain_and_names_every_option(case: str) -> None:
    own = made(case)
    request = LabellingRequest(own, QueryBudget(2.0, 1e-5, Unit.PHONE, TEACHERS))
    plain = request.identity(LABELS)
    keys = (
        *("name", "classes", "deviation", "confidence", "tau", "norm", "cut", "grid", "scale"),
        *("bar", "largest_weight", "winners", "epsilon", "delta", "unit", "records", "dropout"),
        *("corrupted", "vanishing", "at_once", "counter", "most"),
    )
    checked = ("check threshold", "check deviation") if own.check is not None else ()
    assert set(plain) == {*keys, *checked}
    assert all(isinstance(each, str | int | float | bool | None) for each in plain.values())
    for name in (each.name for each in fields(own)):
        value = getattr(own, name)
        if not isinstance(value, float):
            continue
        other = LabellingRequest(replace(own, **{name: value * 0.75}), request.budget)
        assert other.identity(LABELS) != plain, name


@Case
def test_what_may_be_noise_is_in_votes(case: str) -> None:
    own, wider = made(case, sigma=4.0), made(case, sigma=8.0)
    assert wider.lead_in_doubt(0.95) == pytest.approx(2 * own.lead_in_doubt(0.95))
    assert (own.passes_by_chance(POLL, TEACHERS) is None) == (own.check is None)
    assert own.draws(POLL) > LABELS


@Case
def test_costs_that_look_at_votes_are_published_or_refused(case: str) -> None:
    own = made(case, sigma=20.0)
    voters = crowd(own)
    outcomes, _ = own.decide(
        voters,
        np.ones(TEACHERS, dtype=np.int64),
        np.full((QUERIES, LABELS), 1 / LABELS),
        np.random.default_rng(0).bytes,
    )
    for cost in VotesCost:
        if cost in own.publishes and cost is VotesCost.DEPENDENT:
            found = own.release(cost, voters, outcomes, 8.0, Unit.REPLACED_PHONE)
            assert found.spent >= 0
            assert len(found.sensitivities) == TEACHERS + 1
        elif cost not in own.publishes and not own.publishes:
            with pytest.raises(InvalidParametersError, match="no cost by votes"):
                own.release(cost, voters, outcomes, 8.0, Unit.REPLACED_PHONE)


@pytest.mark.parametrize("sigma", [5e-324, 1e-200, 1e-155, 1e-10, 1e10, 1e155, 1e200, 1e308])
@Case
def test_noise_whose_square_no_number_holds_is_refused(case: str, sigma: float) -> None:
    with pytest.raises(InvalidParametersError, match="must be a number, from 1e-09 to 1e"):
        made(case, sigma=sigma)
    if "check" in CASES[case]:
        with pytest.raises(InvalidParametersError, match=r"^deviation=.*must be a number, from"):
            replace(made(case), check_sigma=sigma)


REFUSED: tuple[tuple[str, dict[str, Any], Counter | None, int, str], ...] = (
    *((name, {"sigma": 0.0}, None, LABELS, "0.0: must be a number, from 1e-09") for name in RULES),
    *((name, {}, Counter.CENTRAL, 1, "classes=1") for name in ("lnmax", "gnmax", "confident")),
    ("binary", {"threshold": 5.0}, None, LABELS, "a check needs both"),
    ("binary", {"check_sigma": 5.0}, None, LABELS, "a check needs both"),
    ("gnthreshold", {"check_sigma": 5.0}, None, LABELS, "needs a --threshold"),
    ("confident", {"check_sigma": 0.0}, None, LABELS, "deviation=0.0: must be a number"),
    ("interactive", {"confidence": 1.5}, None, LABELS, "confidence=1.5"),
    ("tau", {"tau": 2.0}, Counter.CENTRAL, LABELS, "below 2"),
    ("tau", {"norm": 3}, Counter.CENTRAL, LABELS, "norm=3"),
    ("powerset", {"winners": 5}, Counter.FEDERATED, LABELS, "from 1 to the 4 labels"),
    ("powerset", {"winners": 2}, Counter.CENTRAL, LABELS, "a curator counts all sets"),
    ("gnthreshold", {"winners": 0}, Counter.CENTRAL, LABELS, "winners=0"),
    ("gnthreshold", {"threshold": float("nan")}, None, LABELS, "a number of votes above 0"),
    ("gnthreshold", {"threshold": 3.0}, Counter.CENTRAL, LABELS, "--check-sigma"),
    ("gnthreshold-adaptive", {"threshold": 2.0}, Counter.CENTRAL, LABELS, "--check-sigma"),
    ("gnthreshold-adaptive", {}, Counter.CENTRAL, 1, "classes=1"),
    ("grid-threshold", {"grid": ()}, None, LABELS, "one threshold at least"),
    ("grid-threshold", {"grid": (2.0, -1.0)}, None, LABELS, "a number of votes above 0"),
    ("grid-threshold", {"scale": 0.0}, None, LABELS, "scale=0"),
    ("grid-threshold", {"scale": None}, Counter.CENTRAL, LABELS, "scale: a curator"),
    ("grid-threshold", {"scale": 1.0}, Counter.FEDERATED, LABELS, "leave it out"),
    (
        "grid-threshold",
        {"grid": (9.0,), "scale": None},
        Counter.FEDERATED,
        LABELS,
        "below the 9 teachers",
    ),
)


@pytest.mark.parametrize(("name", "given", "counter", "classes", "said"), REFUSED)
def test_options_that_do_not_fit_are_refused(
    name: str, given: dict[str, Any], counter: Counter | None, classes: int, said: str
) -> None:
    options = {each.name: getattr(made(name), each.name) for each in fields(made(name))}
    with pytest.raises(EarshotError, match=said):
        _tallied(name, options | given, counter, classes)


def _tallied(name: str, options: dict[str, Any], counter: Counter | None, classes: int) -> None:
    """Make a tally; without a counter, the rule alone."""
    own = RULES[name](**options)
    if counter is None:
        return
    shape = (TEACHERS, 1, classes) if own.several else (TEACHERS, 1)
    voters = Electorate(np.zeros(shape, dtype=np.int64), classes)
    scores = np.full((1, classes), 1 / classes) if own.takes_scores else None
    tally(counter, own, voters, None, scores, delta=1e-5, random=_nothing)


@pytest.mark.parametrize("name", [name for name, kind in RULES.items() if kind.several])
def test_votes_for_several_labels_are_weighed_by_sums_alone(name: str) -> None:
    own = made(name)
    with pytest.raises(InvalidParametersError, match="weighed by a federated tally alone"):
        tally(
            Counter.CENTRAL, own, crowd(own), np.full(TEACHERS, 2), delta=1e-5,
            random=_nothing,
        )  # fmt: skip


FORMER = {
    "confident": {"deviation": 8.0, "check threshold": 6.5, "check deviation": 8.0},
    "tau": {"deviation": 8.0, "tau": 1.2},
    "gnthreshold": {"deviation": 8.0, "winners": 2, "cut": 2.5},
    "grid-threshold": {"deviation": 8.0, "grid": "2.25, 5.75", "scale": 8.0},
}
"""Lines that journals had before a rule was a class, less what all of them had alike."""


@pytest.mark.parametrize("name", list(FORMER))
def test_journals_that_were_begun_before_rules_were_classes_go_on(name: str) -> None:
    alike: dict[str, Any] = {
        "name": name, "classes": 4, "confidence": None, "tau": None, "norm": 2, "winners": None,
        "cut": None, "grid": None, "scale": None, "bar": None, "largest_weight": 1,
        "epsilon": 2.0, "delta": 1e-5, "unit": "phone", "records": 9, "dropout": 0.05,
        "corrupted": 0.05, "vanishing": 0.0, "at_once": 200, "counter": "central", "most": None,
    }  # fmt: skip
    request = LabellingRequest(made(name, sigma=8.0), QueryBudget(2.0, 1e-5, Unit.PHONE, TEACHERS))
    assert request.identity(LABELS) == alike | FORMER[name]
