"""Students of votes against thresholds: who is asked, what is paid, what is learned."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from support.tagging_folder import write_tagging_folder

from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.sweeps.estimate import estimate
from earshot_studies.kit.outcome import Row, files_of, write
from earshot_studies.muschiol import student as students
from earshot_studies.muschiol.privacy import ADAPTIVE, TABLE_5_4, SampleVotes
from earshot_studies.muschiol.student import (
    PRINTED,
    SAMPLES,
    SOUND,
    THEIRS,
    TRUE,
    Lesson,
    answers,
    best_value,
    lessons,
    measured,
    orderings,
)
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL
from earshot_studies.muschiol.taggers.school import LearnerKind, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.mel_power import MelSettings
from earshot_studies.muschiol.work import TaggerWork

LINEAR = Teaching(LearnerKind.LINEAR)
QUERIES = 3000


@pytest.fixture(scope="module")
def ensemble() -> SampleVotes:
    """Fifty teachers, of six labels; about half of the queries have one that most agree on."""
    generator = np.random.default_rng(4)
    truth = (generator.random((QUERIES, 6)) < 0.25).astype(np.int8)
    clear = generator.random((QUERIES, 1)) < 0.5
    centre = np.where(truth == 1, np.where(clear, 0.85, 0.35), 0.1)
    noise = generator.normal(0, 0.1, (50, QUERIES, 6)).astype(np.float32)
    return SampleVotes.of(np.clip(centre + noise, 0, 1), truth)


def test_without_a_check_nobody_is_asked_more_than_is_learned(ensemble: SampleVotes) -> None:
    for rule in (PRINTED, SOUND):
        given = answers(Lesson(rule, ("0.4", ""), 120), ensemble, 1)
        assert given.asked == 120
        np.testing.assert_array_equal(given.numbers, np.arange(120))
        assert given.named.shape == (120, 6)


@pytest.mark.parametrize("rule", [PRINTED, SOUND])
def test_with_a_check_queries_are_asked_until_enough_are_answered(
    ensemble: SampleVotes, rule: str
) -> None:
    few, more = (answers(Lesson(rule, ("0.4", "0.6"), n), ensemble, 1) for n in (100, 200))
    assert len(few.numbers) == 100
    assert few.asked == few.numbers[-1] + 1
    assert few.asked > 150
    np.testing.assert_array_equal(few.numbers, more.numbers[:100])
    np.testing.assert_array_equal(few.named, more.named[:100])
    whole = answers(Lesson(rule, ("0.4", "0.6"), QUERIES), ensemble, 1)
    assert whole.asked == QUERIES
    assert len(whole.numbers) < QUERIES
    # What is answered is what teachers agree on more.
    most = ensemble.votes.max(axis=1)
    assert most[whole.numbers].mean() > most.mean() + 3


def test_noise_has_the_variance_of_the_tables(ensemble: SampleVotes) -> None:
    given = answers(Lesson(PRINTED, ("0.4", ""), QUERIES), ensemble, 2)
    expected = stats.norm.sf((20 - ensemble.votes) / math.sqrt(0.3 * 50))
    surprise = (given.named - expected).sum() / math.sqrt((expected * (1 - expected)).sum())
    assert abs(surprise) < 4


def test_an_adaptive_threshold_soundly_comes_after_noise(ensemble: SampleVotes) -> None:
    silent = replace(ensemble, votes=ensemble.votes * 0, cut=ensemble.cut * 0)
    named = answers(Lesson(SOUND, (ADAPTIVE, ""), QUERIES), silent, 1).named
    # Of noise alone every label wins as often as every other.
    assert named.any(axis=1).all()
    assert not named.all(axis=1).any()
    assert stats.chisquare(named.sum(axis=0)).pvalue > 1e-4


def test_costs_are_those_of_the_table_and_of_the_gaussian_mechanism(ensemble: SampleVotes) -> None:
    samples = 2000
    claimed = answers(Lesson(PRINTED, ("0.2", ""), samples), ensemble, 1).costs
    assert round(float(claimed["claimed_independent"]), 1) == TABLE_5_4[2000]["0.2", ""].independent
    assert float(claimed["claimed"]) <= float(claimed["claimed_independent"]) + 1e-9
    assert 0 <= float(claimed["q"]) <= 1
    sound = answers(Lesson(SOUND, (ADAPTIVE, ""), samples), ensemble, 1).costs
    for column, changed in (("left_out", 3), ("replaced", 6)):
        mu = math.sqrt(samples * changed / (0.3 * 50))

        def excess(epsilon: float, mu: float = mu) -> float:
            """δ(ε) of a Gaussian (Balle and Wang, ICML 2018), over 10⁻⁸, in logarithms."""
            first = stats.norm.logcdf(mu / 2 - epsilon / mu)
            second = epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)
            return float(first + np.log(-np.expm1(second - first)) - math.log(1e-8))

        least = optimize.brentq(excess, mu**2 / 2, mu**2 / 2 + 20 * mu)
        most = mu**2 / 2 + mu * math.sqrt(2 * math.log(1e8))
        assert least < float(sound[column]) < most
    checked = answers(Lesson(SOUND, (ADAPTIVE, "0.6"), 200), ensemble, 1)
    without = answers(Lesson(SOUND, (ADAPTIVE, ""), 200), ensemble, 1)
    assert float(checked.costs["left_out"]) > float(without.costs["left_out"])


def test_true_labels_cost_nothing_that_is_told(ensemble: SampleVotes) -> None:
    given = answers(Lesson(TRUE, ("", ""), 70), ensemble, 1)
    np.testing.assert_array_equal(given.named, ensemble.truth[:70] == 1)
    assert given.costs == {}


def test_a_check_that_nothing_passes_is_named(ensemble: SampleVotes) -> None:
    silent = replace(ensemble, votes=ensemble.votes * 0, cut=ensemble.cut * 0)
    for rule in (PRINTED, SOUND):
        with pytest.raises(InvalidParametersError, match="none of 3000 queries was answered"):
            answers(Lesson(rule, ("0.4", "0.8"), 10), silent, 1)


def test_lessons_are_all_of_the_table(ensemble: SampleVotes) -> None:
    short, full = lessons(False), lessons(True)
    for listed in (short, full):
        names = [lesson.name for lesson in listed]
        assert len(set(names)) == len(names)
    assert set(short) < set(full)
    printed = {lesson for lesson in short if lesson.rule == PRINTED}
    assert {(each.rule, *each.setting, each.samples) for each in printed} == set(THEIRS)
    assert {each.setting for each in printed} == set(TABLE_5_4[2000])


def rows() -> list[Row]:
    """Every student of two seeds; mAP is made up."""
    generator = np.random.default_rng(0)
    places = [
        (seed, lesson.rule, *lesson.setting, lesson.samples)
        for seed in (1, 2)
        for lesson in lessons(False)
    ]
    places += [(seed, name, "", "", 0) for seed in (1, 2) for name in ("ensemble", "baseline")]
    found: list[Row] = []
    for place in places:
        row: Row = dict(zip(("seed", "rule", "th_e", "th_c", "samples"), place, strict=True))
        for column in ("mAP", "macro_F1", "micro_F1", "validation_mAP"):
            row[column] = float(generator.random())
        row["left_out"] = row["replaced"] = float(generator.integers(1, 9))
        found.append(row)
    return found


def test_orderings_are_differences_of_one_seed() -> None:
    made = rows()
    listed = {each.what: each for each in orderings(made)}
    more = listed[f"mAP, 0.2: {SAMPLES[1]:,} − {SAMPLES[0]:,}"]
    assert more.theirs == pytest.approx(0.104 - 0.083)
    value = {
        (row["seed"], row["samples"]): float(row["mAP"])
        for row in made
        if (row["rule"], row["th_e"], row["th_c"]) == (PRINTED, "0.2", "")
    }
    few, many = SAMPLES
    assert more.ours == estimate([value[seed, many] - value[seed, few] for seed in (1, 2)])


def test_the_best_student_is_chosen_on_validation() -> None:
    made = [row for row in rows() if row["seed"] == 1]
    best, front = best_value(made)
    sound = [row for row in made if row["rule"] == SOUND]
    assert best["validation_mAP"] == max(float(row["validation_mAP"]) for row in sound)
    for row in sound:
        beaten = any(
            float(other["mAP"]) > float(row["mAP"])
            and float(other["left_out"]) <= float(row["left_out"])
            for other in sound
        )
        assert (row in front) != beaten


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TaggerStudy:
    root = tmp_path_factory.mktemp("study")
    folder = write_tagging_folder(root / "data")
    mel = MelSettings(8000, 512, 512, 8, 1.0)
    return TaggerStudy(folder, root / "cache", TaggerStudySize(600, 60, 900, 80), LONG_TAIL, mel)


@pytest.mark.slow
def test_true_labels_teach_more_than_noise(study: TaggerStudy) -> None:
    true = measured(study, LINEAR, Lesson(TRUE, ("", ""), 300), 1)
    drowned = measured(study, LINEAR, Lesson(PRINTED, ("0.6", ""), 5), 1)
    assert float(true["mAP"]) > float(drowned["mAP"]) + 0.1
    assert true["answers_F1"] == 1


@pytest.mark.slow
def test_everything_is_written_and_the_second_time_nothing_is_done_again(
    study: TaggerStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = TaggerWork(study, 1, LINEAR)
    outcome = students.reproduce(work)
    files = write(outcome, tmp_path)
    assert sorted(path.name for path in files) == sorted(files_of(students.NAME))
    assert len(outcome.rows) == len(lessons(False)) + 2

    def never(*args: object) -> None:
        raise AssertionError("taught again")

    monkeypatch.setattr(students, "measured", never)
    assert students.reproduce(work).note == outcome.note
