"""The labelling loop: its budget, its journal, and runs that are killed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.vote_rules import rule

from earshot_models.votes.counts import vote_counts
from earshot_models.votes.electorate import Electorate, electorate, load
from earshot_models.votes.rules.rule import VoteKind
from earshot_models.votes.tally import journal
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.interface import Purchase
from earshot_models.votes.tally.journal import OtherLabellingError
from earshot_models.votes.tally.labelling import KEY, LabellingRequest, fingerprint, run
from earshot_models.votes.tally.result import End
from earshot_models.votes.tally.tallies import Counter, SumSettings, tally
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, WrongStateError
from earshot_protocol.privacy.conversions import zcdp_epsilon
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE

CONFIDENT = rule("confident", 40.0, (200, 150.0))
TEACHERS = 250


def voters(queries: int = 400, teachers: int = TEACHERS) -> Electorate:
    generator = np.random.default_rng(2)
    right = generator.integers(0, 10, queries)
    agree = generator.random((teachers, queries)) < generator.beta(2, 1, queries)
    return Electorate(np.where(agree, right, generator.integers(0, 10, agree.shape)), 10)


def budget(epsilon: float = 2.0, delta: float = 1e-5, **more: Any) -> QueryBudget:
    return QueryBudget(
        epsilon, delta, more.pop("unit", Unit.REPLACED_PHONE), more.pop("records", 250)
    )


def test_numbers_of_numpy_and_a_path_that_is_a_text_go_on_where_plain_ones_began(
    tmp_path: Path,
) -> None:
    """The journal, which compares every number, has the same in both."""
    crowd = voters(60)
    rules = [
        rule("confident", *each)
        for each in [
            (40.0, (200, 150.0)),
            (
                np.float32(40),
                (np.int64(200), np.float32(150)),
            ),
        ]
    ]
    budgets = [
        budget(2.0, 2**-17),
        budget(np.float32(2), np.float32(2**-17), records=np.int64(250)),
    ]
    requests = [
        LabellingRequest(rules[0], budgets[0], most=5),
        LabellingRequest(rules[1], budgets[1], most=np.int64(5)),
    ]
    assert repr(requests[0]) == repr(requests[1])
    ones = [1] * TEACHERS
    first = run(requests[1], crowd, str(tmp_path), weights=ones).figures()
    again = run(requests[0], crowd, tmp_path, weights=np.array(ones)).figures()
    assert json.dumps(first, allow_nan=False) == json.dumps(again, allow_nan=False)


# ------------------------------------------------------------------------------- budget


def test_a_curator_asks_as_long_as_one_more_query_has_room(tmp_path: Path) -> None:
    request = LabellingRequest(CONFIDENT, budget())
    outcome = run(request, voters(600), tmp_path)
    labelled = outcome.labelled
    assert labelled.end is End.BUDGET
    asked, answered = len(labelled.outcomes), int((labelled.outcomes != NONE).sum())
    assert 0 < answered < asked < 600

    def spent(checks: int, answers: int) -> float:
        return zcdp_epsilon(checks / (2 * 150**2) + answers / 40**2, 1e-5)

    assert spent(asked, answered) <= 2.0
    assert spent(asked + 1, answered + 1) > 2.0 * (1 - 2e-3)  # of the grid of orders
    (cost,) = outcome.figures()["realised"]["costs"]
    assert cost["epsilon"]["teacher replaced"] == pytest.approx(spent(asked, answered), rel=2e-3)


@pytest.mark.parametrize("name", ["gnmax", "lnmax"])
def test_room_is_the_largest_number_that_the_budget_covers(name: str) -> None:
    made = tally(Counter.CENTRAL, rule(name, 40.0), voters(50), delta=1e-5, random=refused)
    own = budget(1.0)
    found = own.room(made, (), 5000)
    assert 0 < found < 5000
    assert own.spent(made, [Purchase(VoteKind.VOTES, found)], own.unit) <= 1.0
    assert own.spent(made, [Purchase(VoteKind.VOTES, found + 1)], own.unit) > 1.0
    assert own.room(made, [Purchase(VoteKind.VOTES, found)], 5000) == 0
    assert own.room(made, (), 7) == 7


def refused(*names: object) -> Any:
    raise AssertionError("a curator draws no teacher's noise")


def test_a_filter_at_one_order_costs_no_query_that_a_budget_covers() -> None:
    """All costs of a curator are multiples of one curve, so one order is as good as all of them."""
    made = tally(Counter.CENTRAL, CONFIDENT, voters(50), delta=1e-5, random=refused)
    for epsilon in (0.3, 1.0, 8.0):
        queries = budget(epsilon).room(made, (), 10**6)
        rho = 1 / (2 * 150**2) + 1 / 40**2
        assert zcdp_epsilon(queries * rho, 1e-5) <= epsilon
        assert zcdp_epsilon((queries + 1) * rho, 1e-5) > epsilon * (1 - 2e-3)


@pytest.mark.parametrize("confident", [False, True])
def test_secure_sums_keep_the_budget_they_were_given(tmp_path: Path, confident: bool) -> None:
    crowd = voters(60, 12)
    mechanism = rule("confident", 4.0, (7, 4.0))
    if not confident:
        mechanism = rule("gnmax", 4.0)
    sums = SumSettings(corrupted=0.0, dropout=0.2, at_once=8)
    request = LabellingRequest(mechanism, budget(9.0, records=12), Counter.FEDERATED, sums)
    outcome = run(request, crowd, tmp_path)
    bought = outcome.labelled.bought
    assert outcome.labelled.end is End.BUDGET
    assert outcome.budget.spent(outcome.tally, bought, Unit.REPLACED_PHONE) <= 9.0
    more = (*bought, *outcome.tally.worst(1))
    assert outcome.budget.spent(outcome.tally, more, Unit.REPLACED_PHONE) > 9.0
    assert not (tmp_path / KEY).exists()


def test_with_a_student_a_filter_keeps_the_budget_whatever_teachers_agree_on(
    tmp_path: Path,
) -> None:
    crowd = voters(60, 12)
    guess = np.eye(10)[np.array([np.bincount(each).argmax() for each in crowd.predictions.T])]
    mechanism = rule("interactive", 4.0, (7, 4.0), confidence=0.5)
    request = LabellingRequest(
        mechanism, budget(9.0, records=12), Counter.FEDERATED, SumSettings(corrupted=0.0, at_once=8)
    )
    outcome = run(request, crowd, tmp_path, scores=guess)
    bought = outcome.labelled.bought
    sums = {kind: sum(each.queries for each in bought if each.kind is kind) for kind in VoteKind}
    assert outcome.labelled.end is End.BUDGET
    assert 0 < sums[VoteKind.VOTES] < sums[VoteKind.CHECK]
    assert outcome.budget.spent(outcome.tally, bought, Unit.REPLACED_PHONE) <= 9.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0: must be a positive"),
        ({"delta": 0.0}, "delta=0.0: must be above 0"),
        ({"delta": 1 / 250}, "must be below 1/250"),
        ({"delta": 1e-5, "records": 100_000}, "must be below 1/100000"),
        ({"records": 0}, "records=0: must be a whole number, at least 1"),
        ({"unit": Unit.RECORDING}, "unit=recording: must be one of"),
    ],
)
def test_budgets_that_protect_nobody_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        budget(**{"epsilon": 1.0, **given})


# ------------------------------------------------------------------------------- journal


@pytest.mark.parametrize("counter", list(Counter))
def test_a_labelling_killed_at_any_write_spends_nothing_twice(
    counter: Counter, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "support.killed_labelling", counter.value, str(tmp_path)]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # S603: the program is ours.
    done = subprocess.run(program, env=paths, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["wrong"] == []
    assert seen["kills"] == seen["moments"] >= 16


def test_a_journal_goes_on_under_the_same_parameters_only(tmp_path: Path) -> None:
    request = LabellingRequest(CONFIDENT, budget(), most=30)
    crowd = voters()
    first = run(request, crowd, tmp_path)
    again = run(request, crowd, tmp_path)
    assert (again.labelled.outcomes == first.labelled.outcomes).all()
    assert again.labelled.bought == first.labelled.bought
    other = rule("confident", 41.0, (200, 150.0))
    with pytest.raises(OtherLabellingError, match=r"deviation 40\.0, not 41\.0"):
        run(LabellingRequest(other, budget(), most=30), crowd, tmp_path)
    with pytest.raises(OtherLabellingError, match=r"epsilon 2\.0, not 3\.0"):
        run(LabellingRequest(CONFIDENT, budget(3.0), most=30), crowd, tmp_path)
    changed = crowd.predictions.copy()
    changed[0, 0] = (changed[0, 0] + 1) % 10
    with pytest.raises(OtherLabellingError, match="votes "):
        run(request, Electorate(changed, 10), tmp_path)


def test_without_the_teachers_noise_a_sum_is_not_run_once_more(tmp_path: Path) -> None:
    crowd = voters(6, 12)
    request = LabellingRequest(rule("gnmax", 4.0), budget(9.0, records=12), Counter.FEDERATED)
    with journal.opened(tmp_path / journal.FILE, identity(request, crowd)):
        pass
    with pytest.raises(WrongStateError, match=f"{KEY} is gone"):
        run(request, crowd, tmp_path)


def identity(request: LabellingRequest, crowd: Electorate) -> dict[str, Any]:
    votes = {"votes": fingerprint(crowd.predictions), "weights": None, "scores": None}
    return request.identity(crowd.classes) | votes


# ------------------------------------------------------------------------------- votes


def test_counts_are_dealt_out_to_teachers_and_add_up_to_what_they_were() -> None:
    generator = np.random.default_rng(1)
    counts = generator.multinomial(17, [0.5, 0.3, 0.1, 0.1], size=40)
    found = electorate(counts, False)
    assert (found.teachers, found.classes, found.dealt) == (17, 4, True)
    assert (vote_counts(found.predictions, np.ones(17, dtype=np.int64), 4) == counts).all()
    labels = electorate(np.array([[0, 3, 2]]), True, teachers=3)
    assert labels.predictions.sum(axis=0).tolist() == [[0, 3, 2]]


def test_votes_of_nobody_count_for_nobody() -> None:
    found = electorate(np.array([[0, NONE], [1, NONE]]), False, classes=3)
    assert vote_counts(found.predictions, np.array([2, 5]), 3).tolist() == [[2, 5, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("array", "several", "more", "message"),
    [
        ([[2, 1], [2, 2]], False, {"teachers": 3}, "1 of 2 queries do not have one vote from each"),
        ([[2.0, math.nan]], False, {}, "one is NaN"),
        ([[0.5, 1.5]], False, {}, "one is a fraction"),
        ([[0, 3]], False, {"classes": 3}, "classes from 0 to 3: must be from -1 to 2"),
        ([[0, 1]], False, {"classes": 2, "teachers": 2}, "votes of 1 teachers, where"),
        ([[0, 4]], True, {"teachers": 3}, "counts of labels from 0 to 4: must be from 0 to 3"),
        ([[[0, 2]]], True, {}, "labels from 0 to 2: must be from 0 to 1"),
        ([[[0, 1]]], False, {}, "votes of shape"),
        ([], False, {}, "must be numbers"),
    ],
)
def test_votes_that_are_none_are_refused(
    array: list[Any], several: bool, more: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        electorate(np.array(array), several, **more)


def test_labels_need_to_know_of_how_many_teachers() -> None:
    with pytest.raises(InvalidParametersError, match="how many teachers there are"):
        electorate(np.array([[0, 4]]), True)


def test_files_that_hold_no_array_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.npy"
    with pytest.raises(InvalidInputError, match="no such file"):
        load(path)
    path.write_bytes(b"not an array")
    with pytest.raises(InvalidInputError, match=r"not a \.npy file of numbers"):
        load(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match=r"not a \.npy file of numbers"):
        load(path)
    np.savez(tmp_path / "several.npz", a=np.zeros(1))
    with pytest.raises(InvalidInputError, match="several arrays"):
        load(tmp_path / "several.npz")
