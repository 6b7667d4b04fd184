"""Personal budgets of teachers: who votes how, what an owner pays, and where it stops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reproduced import reproduced

from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_studies.muehl import cells, data
from earshot_studies.muehl.cells import (
    THEIR_ORDERS,
    Accounting,
    InfluenceVariant,
    OverspentError,
    answered,
    checked,
    closed_form,
    participation,
    plan,
)
from earshot_studies.muehl.table import Table
from earshot_studies.muehl.tables import theirs
from earshot_studies.muehl.votes import Ensembles, VoteFolder

DELTA = 1e-5
MNIST = ConfidentRule(sigma=40, threshold=200, check_sigma=150)
WHOLE = Ensembles(60_000, 250)
EVEN = Ensembles(60_000, 100)  # quarters of exactly 25 teachers


def test_their_example_of_upsampling():
    # "one half is duplicated once ...: 375 teachers and a noise scale of 60" (section 6.2).
    found = plan(InfluenceVariant.UPSAMPLING, 2.0, 2, WHOLE, MNIST)
    assert len(found.wanted) == 375
    assert found.mechanism == ConfidentRule(sigma=60, threshold=300, check_sigma=225)
    assert found.impact == (1, 2)


@pytest.mark.parametrize("higher", cells.HIGHER)
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_weights_add_up_to_the_teachers_in_the_ratio_of_budgets(higher, quarters):
    found = plan(InfluenceVariant.WEIGHTING, higher, quarters, WHOLE, MNIST)
    assert found.weights.sum() == pytest.approx(250)
    assert found.impact[1] / found.impact[0] == pytest.approx(higher)
    assert set(found.weights) == {*found.impact}
    assert found.mechanism == MNIST


@pytest.mark.parametrize(("data", "within"), [("mnist", 0.035), ("adult", 0.07)])
@pytest.mark.parametrize("variant", [InfluenceVariant.UPSAMPLING, InfluenceVariant.WEIGHTING])
def test_the_closed_form_gives_their_tables(data, within, variant):
    base = theirs("labels", data, InfluenceVariant.EQUAL, 1.0, 2)
    printed = [
        (
            theirs("labels", data, variant, higher, quarters),
            closed_form(base, plan(variant, higher, quarters, EVEN, MNIST), DELTA),
        )
        for higher in cells.HIGHER
        for quarters in (1, 2, 3)
    ]
    assert len(printed) == 12
    for number, expected in printed:
        if number == "> 2000":
            assert expected > 2000
        else:
            assert number == pytest.approx(expected, rel=within)


@given(
    teachers=st.integers(8, 60),
    quarters=st.integers(1, 3),
    higher=st.sampled_from([1.5, 2.0, 5.0]),
    queries=st.integers(1, 80),
)
@settings(deadline=None, max_examples=30)
def test_who_vanishes_takes_turns(teachers, quarters, higher, queries):
    ensembles = Ensembles(1000, teachers)
    found = plan(InfluenceVariant.VANISHING, higher, quarters, ensembles, MNIST)
    takes = participation(found, queries, np.random.default_rng(0))
    assert takes[:, found.high].all()
    often = takes[:, ~found.high]
    expected = often.shape[1] / (2 * higher**2)
    assert (np.abs(often.sum(axis=1) - expected) <= 2).all()
    turns = often.sum(axis=0)
    assert turns.max() - turns.min() <= 2
    assert found.mechanism.sigma == pytest.approx(40 * (found.high.sum() + expected) / teachers)


@given(st.integers(4, 30), st.integers(0, 100), st.integers(0, 3))
def test_copies_go_to_different_teachers_of_one_group(teachers, more, seed):
    ensembles = Ensembles(teachers + more, teachers, seed)
    quarter = np.full(teachers + more, -1)
    for teacher in range(teachers):
        quarter[ensembles.part(0, teacher)] = ensembles.quarter(teacher)
    for copy in range(3):
        parts = [ensembles.part(copy, teacher) for teacher in range(teachers)]
        assert sorted(np.concatenate(parts).tolist()) == list(range(teachers + more))
        for teacher, part in enumerate(parts):
            assert (quarter[part] == ensembles.quarter(teacher)).all()


def votes_of(teachers, queries, classes=3, seed=0):
    """Teachers that agree more or less."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, queries)
    wrong = random.random((teachers, queries)) < random.uniform(0, 0.6, queries)
    return np.where(wrong, random.integers(0, classes, (teachers, queries)), truth)


SMALL = ConfidentRule(sigma=6, threshold=30, check_sigma=15)


def theorem_6(counts, sigma, order):
    """Papernot et al. (2018), Theorem 6 and Propositions 7, 8, 10, one query in plain numbers."""
    top = max(counts)
    q = sum(math.erfc((top - count) / (2 * sigma)) for count in counts) / 2 - 0.5
    return _bounded(min(q, 1 - 1 / len(counts)), sigma, order)


def _bounded(q, ratio, order):
    usual = order / ratio**2
    if q <= 0:
        return 0.0
    second = ratio * math.sqrt(math.log(1 / q))
    first = second + 1
    e1, e2 = first / ratio**2, second / ratio**2
    if order > first or second <= 1 or q * math.exp(e2) >= 1:
        return usual
    room = (first / (first - 1) * second / (second - 1)) ** second
    if q > math.exp((second - 1) * e2) / room:
        return usual
    a = (1 - q) / (1 - (q * math.exp(e2)) ** (1 - 1 / second))
    b = math.exp(e1) / q ** (1 / (first - 1))
    found = math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
    return min(found, usual)


def paid(found, chosen, votes, takes, dependent):
    """What every voter's owners paid by the end, in plain loops: ε of each voter."""
    epsilons = []
    mechanism = chosen.mechanism
    for voter, high in enumerate(chosen.high):
        moved = chosen.impact[int(high)]
        sums = [0.0] * len(THEIR_ORDERS)
        for place, (query, winner) in enumerate(zip(found.queries, found.winners, strict=True)):
            if takes is not None and not takes[place, voter]:
                continue
            weights = chosen.weights if takes is None else chosen.weights * takes[place]
            counts = [weights[votes[:, query] == kind].sum() for kind in range(3)]
            for index, order in enumerate(THEIR_ORDERS):
                ratio = math.sqrt(2) * mechanism.check_sigma / moved
                if dependent:
                    gap = abs(max(counts) - mechanism.threshold) / mechanism.check_sigma
                    sums[index] += _bounded(math.erfc(gap / math.sqrt(2)) / 2, ratio, order)
                else:
                    sums[index] += order / ratio**2
                if winner == NONE:
                    continue
                # By Δ_o with the noise there is, though q is of the real noise.
                if dependent:
                    top = max(counts)
                    q = sum(math.erfc((top - count) / (2 * mechanism.sigma)) for count in counts)
                    q = min(q / 2 - 0.5, 2 / 3)
                    sums[index] += _bounded(q, mechanism.sigma / moved, order)
                else:
                    sums[index] += order * moved**2 / mechanism.sigma**2
        epsilons.append(
            min(
                total - math.log(DELTA) / (order - 1)
                for total, order in zip(sums, THEIR_ORDERS, strict=True)
            )
        )
    return np.array(epsilons)


@pytest.mark.parametrize(
    "variant", [InfluenceVariant.UPSAMPLING, InfluenceVariant.VANISHING, InfluenceVariant.WEIGHTING]
)
def test_every_owner_pays_what_plain_loops_say_and_no_more_than_its_budget(variant):
    ensembles = Ensembles(200, 20)
    chosen = plan(variant, 3.0, 2, ensembles, replace(SMALL, threshold=12.0))
    chosen = replace(
        chosen, budgets=(3.0, 9.0) if variant is InfluenceVariant.VANISHING else (2.0, 6.0)
    )
    votes = votes_of(len(chosen.wanted), 80)
    found = answered(chosen, votes, 3, DELTA, (Accounting.THEIRS,), np.random.default_rng(3))
    answers = found[Accounting.THEIRS]
    assert 0 < answers.labels < len(answers.queries) < 80
    takes = None
    if variant is InfluenceVariant.VANISHING:
        generator = np.random.default_rng(3)
        order = generator.permutation(80)
        np.testing.assert_array_equal(answers.queries, order[: len(answers.queries)])
        takes = participation(chosen, 80, generator)
    spent = paid(answers, chosen, votes, takes, dependent=True)
    for group, most, budget in zip(
        (~chosen.high, chosen.high), answers.spent, chosen.budgets, strict=True
    ):
        assert spent[group].max() == pytest.approx(most, rel=1e-9)
        assert most <= budget
    checked(answers, chosen)


def test_one_query_more_would_exceed_a_budget():
    chosen = replace(
        plan(InfluenceVariant.WEIGHTING, 2.0, 1, Ensembles(400, 40), SMALL), budgets=(2.5, 5.0)
    )
    votes = votes_of(40, 200)
    kinds = tuple(Accounting)
    found = answered(chosen, votes, 3, DELTA, kinds, np.random.default_rng(0))
    richer = answered(
        replace(chosen, budgets=(3.0, 6.0)), votes, 3, DELTA, kinds, np.random.default_rng(0)
    )
    for accounting in Accounting:
        few, many = found[accounting], richer[accounting]
        assert len(few.queries) < len(many.queries)
        np.testing.assert_array_equal(few.winners, many.winners[: len(few.winners)])
    # The exact laws never charge more than the noise alone does.
    assert len(found[Accounting.SOUND].queries) >= len(found[Accounting.PUBLIC].queries)


def test_a_budget_that_was_exceeded_is_found():
    chosen = plan(InfluenceVariant.WEIGHTING, 2.0, 1, Ensembles(400, 40), SMALL)
    found = answered(
        chosen, votes_of(40, 50), 3, DELTA, (Accounting.PUBLIC,), np.random.default_rng(0)
    )[Accounting.PUBLIC]
    for spent in ((1.01, 1.0), (0.5, 2.1)):
        with pytest.raises(OverspentError, match="more than"):
            checked(replace(found, spent=spent), chosen)


def folder_of(path, **changed):
    rows = np.arange(6, dtype=np.float32)[:, None]
    private = Table(np.zeros((20, 1), np.float32), np.zeros(20, np.int64), ("a", "b"))
    trained = []

    def fit(table, seed):
        trained.append(seed)
        return lambda asked: np.full(len(asked), seed % 2)

    made = VoteFolder(path, Ensembles(20, 4), private, rows, fit, "a coin")
    return replace(made, **changed), trained


def test_no_teacher_is_trained_twice(tmp_path):
    folder, trained = folder_of(tmp_path)
    votes = folder.votes([(0, 1), (1, 2)], lambda *said: None)
    assert votes.tolist() == [[1] * 6, [0] * 6]
    again = folder.votes([(0, 1), (1, 2), (0, 0)], lambda *said: None)
    assert again[:2].tolist() == votes.tolist()
    assert trained == [1, 6, 0]


def test_votes_of_other_teachers_and_damaged_ones_are_refused(tmp_path):
    folder, _ = folder_of(tmp_path)
    folder.votes([(0, 1)], lambda *said: None)
    for changed in ({"recipe": "a die"}, {"rows": np.ones((6, 1), np.float32)}):
        other, _ = folder_of(tmp_path, **changed)
        with pytest.raises(InvalidInputError, match="other teachers"):
            other.votes([(0, 1)], lambda *said: None)
    (tmp_path / "copy-1" / "teacher-0002.npy").write_bytes(b"no numbers")
    with pytest.raises(InvalidInputError, match="damaged"):
        folder.votes([(0, 1)], lambda *said: None)
    np.save(tmp_path / "copy-1" / "teacher-0002.npy", np.zeros(5, np.int8))
    with pytest.raises(InvalidInputError, match="no votes on 6 rows"):
        folder.votes([(0, 1)], lambda *said: None)


def test_an_ensemble_larger_than_its_data_is_refused():
    with pytest.raises(InvalidParametersError, match="number of records, 10"):
        Ensembles(10, 11)


PERSON = "{}, Private, {}, Bachelors, 13, Divorced, Sales, Wife, White, Male, 0, 0, 40, Peru, {}\n"


@pytest.fixture
def census(tmp_path):
    random = np.random.default_rng(0)
    lines = []
    for _ in range(400):
        age, weight = random.integers(20, 80, 2)
        lines.append(PERSON.format(age, weight, ">50K" if age > 50 else "<=50K"))
    folder = tmp_path / "census"
    folder.mkdir()
    (folder / "adult-train.csv").write_text("".join(lines[:300]))
    (folder / "adult-test.csv").write_text("".join(lines[300:]))
    return folder


@pytest.mark.slow
def test_both_tables_from_a_folder_and_what_they_leave_for_the_next(census, tmp_path, monkeypatch):
    from sklearn.ensemble import RandomForestClassifier

    def small(table, seed):
        forest = RandomForestClassifier(3, random_state=seed).fit(table.rows, table.labels)
        return lambda rows: forest.predict(rows).astype(np.int64)

    monkeypatch.setattr(data, "forest", small)
    monkeypatch.setattr(cells, "HIGHER", (2.0,))
    votes = tmp_path / "votes"
    common = ("--data", census, "--votes", votes, "--teachers", 16, "--processes", 1, "--full")
    out = tmp_path / "labels"
    rows = reproduced("personalized-labels", out, *common)
    assert len(rows) == 1 + 3 * 3
    assert rows[0]["variant"] == "equal"
    assert rows[0]["theirs"] == "195"
    assert {row["variant"] for row in rows} == set(InfluenceVariant)
    for row in rows:
        assert float(row["most_spent_lower"]) <= 1
        assert float(row["most_spent_higher"]) <= float(row["higher"])
    note = (out / "personalized-labels.md").read_text()
    assert "more than its budget" in note
    assert "for 250 teachers; beside the votes of 16, they are 16 times as large." in note
    labels = {(row["variant"], row["share"]): float(row["ours_by_theirs"]) for row in rows}
    fewer = labels["vanishing", "0.25"] < labels["equal", ""]
    where = "R = 2" if fewer else "no R"
    assert f"fewer labels than the baseline at {where}\n(theirs: R = 2)." in note
    assert {row["deviation"] for row in rows} == {""}, "one process does not deviate"
    assert (out / "personalized-labels.png").stat().st_size > 1000

    # Its votes serve the other table: no teacher is trained any more, only students.
    def student(table, seed):
        assert len(table) <= 2000
        return small(table, seed)

    monkeypatch.setattr(data, "forest", student)
    before = sorted(path.stat().st_mtime_ns for path in votes.rglob("*.npy"))
    out = tmp_path / "accuracy"
    rows = reproduced("personalized-accuracy", out, *common)
    assert before == sorted(path.stat().st_mtime_ns for path in votes.rglob("*.npy"))
    assert len(rows) == 10
    assert all(0 < float(row["sound_accuracy"] or 50) <= 100 for row in rows)
