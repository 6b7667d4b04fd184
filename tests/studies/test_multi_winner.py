"""Reproductions of votes with several winners: who wins, what is claimed, students, parties."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from support.command import earshot

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_studies.dziedzic import capc, queries
from earshot_studies.dziedzic import student as multi_winner_student
from earshot_studies.dziedzic.contests import (
    ORDERS,
    BySet,
    answered,
    binary,
    clipped,
    limited_votes,
    powerset,
)
from earshot_studies.dziedzic.multi_winner import MixtureStudy, best_noise, ensembles
from earshot_studies.dziedzic.queries import Allowance, data_independent, figure_1, first_queries
from earshot_studies.dziedzic.student import DpSgdTraining, private_heads, student
from earshot_studies.kit.dp_sgd import training_epsilon, training_noise
from earshot_studies.kit.mixtures.embedding import Mixtures, Part, Size
from earshot_studies.kit.mixtures.ensembles import Aim
from earshot_studies.kit.outcome import Row

LABELS = 4


def blobs(shape: tuple[int, ...], generator: np.random.Generator, apart: float = 2.0) -> Part:
    """Each label moves a coordinate of its own."""
    truth = (generator.random((*shape, LABELS)) < 0.35).astype(np.int8)
    return Part((apart * truth + generator.normal(size=truth.shape)).astype(np.float32), truth)


@pytest.fixture(scope="module")
def mixtures() -> Mixtures:
    generator = np.random.default_rng(1)
    return Mixtures(
        tuple("abcd"),
        blobs((12, 40), generator),
        blobs((200,), generator),
        blobs((120,), generator),
        blobs((200,), generator),
        np.ones(LABELS, np.int64),
    )


def cast(rows: int, generator: np.random.Generator, teachers: int = 9) -> np.ndarray:
    return (generator.random((teachers, rows, LABELS)) < 0.5).astype(np.int8)


def test_their_own_numbers_come_out() -> None:
    rows = {(row["table"], row["rule"]): row for row in (*figure_1(), *data_independent())}
    # Section F.9 prints 123 and 48; what the counts cost is more by the factors of their claims.
    assert rows["F.9, Pascal VOC", "L2-DI"]["claimed"] == 123
    assert rows["F.9, MIMIC", "L2-DI"]["claimed"] == 48
    assert rows["F.9, Pascal VOC", "L2-DI"]["counted"] == 30
    assert rows["F.9, MIMIC", "L2-DI"]["counted"] == 20
    assert rows["figure 1, random", "Binary"]["claimed"] == 12
    assert rows["figure 1, random", "Powerset"]["claimed"] == 241
    assert rows["figure 1, all zeros", "Powerset"]["claimed"] == 3
    assert 195 <= int(rows["figure 1, all zeros", "Binary"]["claimed"]) <= 206


def test_claims_are_the_papers_formula() -> None:
    """Theorem 6 as a textbook would write it, label by label, at the orders where it holds."""
    ballots = cast(3, np.random.default_rng(2), teachers=50)
    ballots[:, 0] = 0  # unanimous
    sigma = 4.0
    contest = binary(ballots)
    found = contest.claimed(sigma)

    def theorem_6(gap: float, order: float) -> float:
        usual = order / sigma**2
        q = min(0.5 * special.erfc(gap / (2 * sigma)), 0.5)
        second = sigma * math.sqrt(math.log(1 / q))
        first = second + 1
        e1, e2 = first / sigma**2, second / sigma**2
        if second <= 1 or order > first or q * math.exp(e2) >= 1:
            return usual
        limit = math.exp((second - 1) * e2) / (
            (first / (first - 1) * second / (second - 1)) ** second
        )
        if q > limit:
            return usual
        a = (1 - q) / (1 - (q * math.exp(e2)) ** (1 - 1 / second))
        b = math.exp(e1) / q ** (1 / (first - 1))
        total = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
        return min(math.log(total) / (order - 1), usual)

    for query, place in itertools.product(range(3), (0, 10, 30, 60)):
        votes = ballots[:, query].sum(axis=0)
        gaps = [abs(50 - 2 * int(each)) for each in votes]
        expected = sum(theorem_6(gap, ORDERS[place]) for gap in gaps)
        assert found[query, place] == pytest.approx(expected, rel=1e-6)


def test_what_holds_is_never_below_what_outcomes_cost() -> None:
    ballots = cast(20, np.random.default_rng(3))
    for contest in (binary(ballots), clipped(ballots, 1.2), powerset(ballots)):
        assert (contest.exactly(3.0) <= contest.counted(3.0) * (1 + 1e-9) + 1e-9).all()
        assert len(contest) == 20
        part = contest.rows(5, 9)
        assert len(part) == 4
        assert np.allclose(part.claimed(3.0), contest.claimed(3.0)[5:9])


def test_without_noise_the_majority_wins() -> None:
    ballots = cast(30, np.random.default_rng(4))
    generator = np.random.default_rng(0)
    majority = (ballots.sum(axis=0) > 4.5).astype(int)
    assert np.array_equal(binary(ballots).winners(0, generator), majority)
    sets = powerset(ballots).winners(0, generator)
    for query, winner in enumerate(sets):
        counts = [(ballots[:, query] == each).all(axis=1).sum() for each in ballots[:, query]]
        assert (ballots[:, query] == winner).all(axis=1).sum() == max(counts)


def test_a_tau_that_clips_nothing_is_binary_voting() -> None:
    ballots = cast(5, np.random.default_rng(5))
    assert clipped(ballots, 2.0).tau is None
    assert clipped(ballots, 1.9).tau == 1.9
    assert clipped(ballots, 4.0, norm=1).tau is None


def test_gaps_are_first_less_second() -> None:
    ballots = np.zeros((9, 2, LABELS), np.int8)
    ballots[:3, 0, 0] = ballots[3:5, 0, 1] = 1  # four cast nothing, three a, two b
    found = powerset(ballots)
    assert found.gap() == pytest.approx((1 + 9) / 2)
    assert binary(ballots[:, 1:]).gap() == 9


def test_sets_of_a_few_labels_are_fewer() -> None:
    generator = np.random.default_rng(6)
    ballots, likely = cast(8, generator), generator.random((9, 8, LABELS))
    for largest in (1, 2, 4):
        votes = limited_votes(ballots, likely, largest)
        every = sum(math.comb(LABELS, size) for size in range(largest + 1))
        assert np.allclose(np.exp(votes.log_uncast), every - votes.cast)
        assert votes.sets.sum(axis=1).max() <= largest
        contest = BySet(votes)
        assert isinstance(contest.rows(2, 5).votes, type(votes))
    # What a ballot keeps is what it holds likeliest.
    one = limited_votes(np.ones((1, 1, LABELS), np.int8), likely[:1, :1], 1)
    assert one.sets[0].argmax() == likely[0, 0].argmax()


def test_budgets_are_spent_to_the_last_query() -> None:
    ballots = cast(300, np.random.default_rng(7))
    contest, budget = binary(ballots), Allowance(20.0, 1e-5)
    count = first_queries(contest, lambda part: part.claimed(3.0), budget)
    total = contest.claimed(3.0)

    def epsilon(queries: int) -> float:
        spent = total[:queries].sum(axis=0)
        return float((spent + math.log(1e5) / (ORDERS - 1)).min())

    assert 0 < count < 300
    assert epsilon(count) <= 20 < epsilon(count + 1)
    assert count == answered(total, 20.0, 1e-5)
    everything = first_queries(contest, lambda part: 1e-9 * part.claimed(3.0), budget)
    assert everything == 300
    assert answered(np.asarray(ORDERS * 100), 20.0, 1e-5) == 0


def test_noise_is_that_with_which_most_are_answered() -> None:
    ballots = np.zeros((50, 400, LABELS), np.int8)
    ballots[:5] = 1
    contest = binary(ballots)
    found = best_noise(contest.claimed, 30.0, 4.0, 1e-5)
    counts = {
        sigma: answered(contest.claimed(sigma), 4.0, 1e-5) for sigma in (1.0, 4.0, 8.0, 12.0, 30.0)
    }
    assert answered(contest.claimed(found), 4.0, 1e-5) >= max(counts.values()) > counts[30.0]
    assert best_noise(contest.claimed, 3.0, 4.0, 1e-5) <= 3.0


def test_private_training_costs_what_is_asked() -> None:
    noise = training_noise(2.0, 0.1, 30, 1e-5)
    assert 1.9 < training_epsilon(noise, 0.1, 30, 1e-5) <= 2.0
    # One batch of everybody is the Gaussian mechanism; Balle and Wang (ICML 2018), Theorem 8.
    z, delta = 3.0, 1e-5
    found = training_epsilon(z, 1.0, 1, delta)
    exact = special.ndtr(0.5 / z - found * z) - math.exp(found) * special.ndtr(-0.5 / z - found * z)
    assert exact <= delta
    assert exact > 0.95 * delta
    with pytest.raises(InvalidParametersError, match="rate"):
        training_epsilon(1.0, 1.5, 1, 1e-5)


def test_gradients_are_clipped_one_example_at_a_time() -> None:
    """One full batch without noise, against a loop over examples."""
    part = blobs((12,), np.random.default_rng(8))
    training = DpSgdTraining(steps=1, rate=1.0, norm=0.2, speed=3.0)
    found = private_heads(part, training, 0.0, np.random.default_rng(0))
    rows = np.column_stack([part.features, np.ones(12)]).astype(float) / math.sqrt(LABELS + 1)
    total = np.zeros((LABELS + 1, LABELS))
    for row, truth in zip(rows, part.truth, strict=True):
        gradient = np.outer(row, 0.5 - truth)
        total += gradient * min(1.0, 0.2 / np.linalg.norm(gradient))
    expected = -3.0 * total / 12 / math.sqrt(LABELS + 1)
    assert np.allclose(found.weights, expected[:-1])
    assert np.allclose(found.biases, expected[-1])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_an_example_of_no_finite_length_counts_as_zeros(bad: float) -> None:
    part, training = (
        blobs((12,), np.random.default_rng(8)),
        DpSgdTraining(steps=3, rate=1.0, norm=0.2),
    )
    features = np.array(part.features, float)
    features[4, 1] = bad
    odd = Part(features, part.truth)
    found = private_heads(odd, training, 0.0, np.random.default_rng(0))
    features[4] = 0.0
    others = np.delete(features, 4, axis=0)
    kept = Part(others, np.delete(part.truth, 4, axis=0))
    without = private_heads(
        kept, replace(training, speed=training.speed * 11 / 12), 0.0, np.random.default_rng(0)
    )
    assert np.allclose(found.weights, without.weights)
    assert np.allclose(found.biases, without.biases)


def test_noise_of_private_training_is_of_the_sum() -> None:
    part = blobs((40,), np.random.default_rng(9))
    training = DpSgdTraining(steps=1, rate=0.5, norm=0.7, speed=1.0)
    weights = [
        private_heads(part, training, 5.0, np.random.default_rng(seed)).weights
        for seed in range(400)
    ]
    # The gradients themselves vary by far less than noise of 5 · 0.7 on their sum does.
    deviation = 5.0 * 0.7 / 20 / math.sqrt(LABELS + 1)
    assert np.std(weights, axis=0).mean() == pytest.approx(deviation, rel=0.05)


def test_a_student_learns_from_answers_and_from_what_it_is_sure_of() -> None:
    generator = np.random.default_rng(10)
    few, many, tested = (blobs((rows,), generator, 8.0) for rows in (30, 300, 500))
    few.truth[:10, 3] = NONE
    found = student(few, many.features).probabilities(tested.features)
    assert ((found > 0.5) == tested.truth).mean() > 0.75
    alone = student(few, many.features[:0])
    assert not np.allclose(alone.probabilities(tested.features), found)
    # What is not answered of a query teaches nothing about that label, and about others it does.
    moved = Part(few.features.copy(), few.truth)
    moved.features[:10] += 3.0
    other = student(moved, many.features[:0])
    assert np.array_equal(alone.weights[:, 3], other.weights[:, 3])
    assert not np.array_equal(alone.weights[:, 0], other.weights[:, 0])


def test_equal_noise_and_thresholds_come_from_validation_alone(mixtures: Mixtures) -> None:
    names = {"some": (Aim.F1, 12, 1e-5), "few": (Aim.BALANCED, 5, 1e-5)}
    first, few = ensembles(mixtures, names)
    assert few.teachers == 5
    assert np.array_equal(few.queries.probabilities, first.queries.probabilities[:5])
    flipped = Mixtures(
        mixtures.labels,
        mixtures.teachers,
        mixtures.validation,
        Part(mixtures.queries.features, 1 - mixtures.queries.truth),
        Part(mixtures.test.features, 1 - mixtures.test.truth),
        mixtures.served,
    )
    again = ensembles(flipped, names)[0]
    assert np.array_equal(again.thresholds, first.thresholds)
    assert again.most_noise(LABELS, 0) == first.most_noise(LABELS, 0)
    assert again.tau == first.tau


@dataclass(frozen=True)
class Given(MixtureStudy):
    """A study of mixtures that a test made."""

    made: Mixtures | None = None

    def mixtures(self, seed: int) -> Mixtures:
        assert self.made is not None
        return self.made


def silent(what: str, done: int, total: int, line: str | None = None) -> None:
    """Tell nobody."""


def given(mixtures: Mixtures, folder: Path) -> Given:
    size = Size(12, 40, 1, 200, 120, 200)
    return Given(folder, folder, size, 1, silent, made=mixtures)


def test_parties_gain_by_answers_of_others(
    mixtures: Mixtures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capc, "ASKED", 40)
    rows = capc._of_seed(given(mixtures, tmp_path), 0)
    assert all(row["same_as_real"] == "yes" for row in rows)
    by = {(row["asker"], row["state"]): row for row in rows}
    assert len(by) == 3 * len(capc.STATES)
    for asker in range(3):
        costs = [by[asker, state] for state in (capc.TEN, capc.TWENTY, capc.EVERY)]
        for row in costs:
            if row["queries"]:
                # Whoever sees counts learns more than whoever sees outcomes; three more than one.
                assert row["outcomes_epsilon"] <= row["counts_epsilon"] < row["three_epsilon"]
                assert row["three_epsilon"] < 3 * row["counts_epsilon"]
        assert 0 < by[asker, capc.COUNTS]["queries"] < 40
        assert by[asker, capc.COUNTS]["counts_epsilon"] <= 20
    gains = [by[each, capc.NO_NOISE]["BAC"] - by[each, capc.BEFORE]["BAC"] for each in range(3)]
    assert np.mean(gains) > 0
    claims = capc.claims(capc._averaged(rows))
    assert claims[-1].ours.mean == pytest.approx(np.mean(gains))
    assert [each.theirs for each in claims[:3]] == [pytest.approx(0.03), pytest.approx(0.05), None]
    assert len(claims) == len(capc.STATES) - 1
    rows[0]["answers_BAC"], rows[1]["answers_BAC"] = 0.5, ""
    averaged = {row["state"]: row["answers_BAC"] for row in capc._averaged(rows)}
    assert averaged[rows[0]["state"]] == averaged[rows[1]["state"]] == ""


def test_answers_are_scored_wherever_a_label_is_in_some_of_the_queries_and_not_in_others() -> None:
    truth = np.array([[1, 0], [0, 0], [1, 0], [1, 0]], np.int8)
    answers = np.array([[1, 0], [0, 0], [0, 1], [1, 0]], np.int8)
    assert capc._correct(truth[:2], answers[:2]) == 1.0
    assert capc._correct(truth[1:3], answers[1:3]) == 0.5
    assert capc._correct(truth, answers) == pytest.approx(5 / 6)
    for alike in (truth[:0], truth[:1], truth[2:], np.repeat(truth[:1], 9, axis=0)):
        assert capc._correct(alike, alike) == ""


def test_claims_on_queries_are_differences_of_rules_seed_by_seed() -> None:
    answers = {"Binary": (400, 420, 440), "Powerset": (100, 90, 80), "τ": (500, 500, 500)}
    rows: list[Row] = [
        {
            "seed": seed, "table": "labels", "ensemble": ensemble, "rule": rule, "labels": labels,
            "claimed": number, "counted": number / 2, "exactly_best": number, "gap": 3.0,
        }
        for rule, numbers in answers.items()
        for seed, number in enumerate(numbers)
        for ensemble in queries.ENSEMBLES
        for labels in queries.LABELS
    ]  # fmt: skip
    found = {(each.said.split()[0], each.what): each for each in queries.claims(rows)}
    ahead = found["Binary", "20 labels, queries by their accounting: Binary − Powerset"]
    assert (ahead.ours.mean, ahead.theirs, ahead.verdict) == (330, 427 - 78, "confirmed")
    counted = found["Binary", "20 labels, queries by noisy counts: Binary − Powerset"]
    assert (counted.ours.mean, counted.theirs) == (165, None)
    few = found["τ", "20 labels, queries by their accounting: τ − Binary"]
    assert (few.ours.mean, few.theirs) == (80, None)
    gap = found["Winners", "20 labels, votes beyond the second: Binary − Powerset"]
    assert (gap.ours.mean, gap.verdict) == (0, "undecided")


def test_answers_have_the_noise_that_the_sum_has() -> None:
    ballots = np.zeros((9, 4000, 1), np.int8)
    ballots[:6] = 1
    answers = capc._answers(ballots, 8.0, np.random.default_rng(11))
    mechanism = capc._sum(ballots, 1, 8.0)
    assert mechanism.deviation == 4.0
    deviation = math.sqrt(mechanism.noise(9).variance)
    assert deviation >= 4.0
    expected = special.ndtr(1.5 / deviation)
    assert answers.mean() == pytest.approx(expected, abs=0.04)


@pytest.mark.slow
def test_students_stand_beside_private_training(
    mixtures: Mixtures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = multi_winner_student.TABLES[0]
    short = multi_winner_student.PaperTable("short", LABELS, Aim.F1, 20.0, 1e-5, table.rules, {})
    monkeypatch.setattr(multi_winner_student, "TABLES", (short,))
    study = given(mixtures, tmp_path)
    rows = {str(row["method"]): row for row in multi_winner_student._of_seed(study, 0)}
    assert rows["non-private"]["AUC"] > 0.9
    assert rows["DP-SGD"]["epsilon"] <= 20
    assert (
        rows["Binary, their accounting"]["queries"] > rows["Binary, sound: noisy counts"]["queries"]
    )
    averaged = multi_winner_student._averaged(list(rows.values()))
    note = multi_winner_student._note(averaged, study)
    assert all(f"| {name} |" in note for name in rows)
    multi_winner_student._draw(averaged, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_what_was_measured_of_a_seed_is_kept(mixtures: Mixtures, tmp_path: Path) -> None:
    study = given(mixtures, tmp_path)
    calls: list[int] = []

    def make(study: MixtureStudy, seed: int) -> list[Row]:
        calls.append(seed)
        return [{"seed": seed, "figure": 0.25, "text": "ε"}]

    study = replace(study, encoder="one")
    first = [study.kept("figures", seed, make) for seed in (0, 1, 0)]
    assert calls == [0, 1]
    assert first[0] == first[2] == [{"seed": 0, "figure": 0.25, "text": "ε"}]
    replace(study, encoder="other").kept("figures", 0, make)
    assert calls == [0, 1, 0]


@pytest.mark.slow
def test_all_tables_are_drawn_and_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(12)

    def many(*shape: int) -> Part:
        truth = (generator.random((*shape, 20)) < 0.15).astype(np.int8)
        return Part((4.0 * truth + generator.normal(size=truth.shape)).astype(np.float32), truth)

    names = tuple(map(str, range(20)))
    made = Mixtures(names, many(50, 60), many(150), many(120), many(60), np.ones(20, np.int64))
    monkeypatch.setattr(queries, "LABELS", (1, 20))
    monkeypatch.setattr(queries, "SIGMAS", (7, 20))
    monkeypatch.setattr(queries, "_SET_LABELS", ())
    monkeypatch.setattr(MixtureStudy, "mixtures", lambda study, seed: made)
    size = Size(50, 60, 1, 150, 120, 60)
    outcome = queries.reproduce(MixtureStudy(tmp_path, tmp_path, size, 1, silent))
    assert {row["table"] for row in outcome.rows} >= {"labels", "noise", "epsilon", "set size"}
    by = {
        (row["ensemble"], row["rule"], row["labels"]): row
        for row in outcome.rows
        if row["table"] == "labels"
    }
    # A rule that answers by more labels answers no more queries; counts pay for fewer than claims.
    for rule in ("Binary", "Powerset"):
        one, twenty = (by["high consensus", rule, labels] for labels in (1, 20))
        assert float(twenty["claimed"]) <= float(one["claimed"])
    binary_row = by["high consensus", "Binary", 20]
    assert float(binary_row["counted"]) <= float(binary_row["claimed"])
    assert "### Low consensus" in outcome.note
    assert (
        "| Binary answers more than Powerset where consensus is high | 20 labels, " in outcome.note
    )
    assert " | +349 | " in outcome.note, "427 and 78 of Tables 11 and 12"
    assert "| nan" not in outcome.note
    outcome.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 20_000


def test_a_folder_without_sound_is_refused_in_a_sentence(tmp_path: Path) -> None:
    told = earshot("reproduce", "capc", "--data", tmp_path, "--out", tmp_path / "out", "--seeds", 1)
    assert told.returncode == 2
    assert "esc10" in told.stderr
    assert not list((tmp_path / "out").glob("*.csv"))
