"""Tables 5.1 to 5.3 and orderings: by a textbook, on probabilities that are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_score
from support.command import earshot

from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.sweeps.estimate import estimate
from earshot_studies.kit.claims import CONFIRMED, REFUTED, UNDECIDED, Claim
from earshot_studies.kit.outcome import Row, files_of, write
from earshot_studies.muschiol import ensemble as study
from earshot_studies.muschiol.ensemble import (
    ADAPTIVE,
    BASELINE,
    HALF,
    TABLE_5_2,
    TABLE_5_3,
    TEACHERS,
    best_threshold,
    measured,
    named,
    orderings,
)
from earshot_studies.muschiol.taggers.ensembles import EnsembleScores, Scored
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL
from earshot_studies.muschiol.taggers.school import NETWORKS, LearnerKind, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.mel_power import MelSettings
from earshot_studies.muschiol.work import TaggerWork

LABELS, ROWS = 3, 60


def scored(teachers: int, seed: int) -> Scored:
    generator = np.random.default_rng([seed, teachers])
    truth = (np.random.default_rng(seed).random((ROWS, LABELS)) < 0.35).astype(np.int8)
    noise = generator.normal(0, 0.25, (teachers, ROWS, LABELS))
    likely = np.clip(0.15 + 0.4 * truth + noise, 0, 1) * np.linspace(1, 0.6, LABELS)
    return Scored(likely.astype(np.float32), truth)


def ensemble(teachers: int, seed: int = 1) -> EnsembleScores:
    """As if of so many teachers; a few stand for all."""
    few = {BASELINE: 1, 10: 3, 20: 4, 50: 5}[teachers]
    sides = (scored(few, 10 * seed + side) for side in range(3))
    return EnsembleScores(tuple("abc"), *sides)


def found(rows: list[Row], *place: object) -> Row:
    (row,) = [
        row
        for row in rows
        if (row["table"], row["teachers"], row["th_e"], row["th_c"]) == place
        or (len(place) == 2 and (row["table"], row["teachers"]) == place)
    ]
    return row


def three(truth: np.ndarray, said: np.ndarray) -> list[float]:
    """By hand, over labels that are in some mixtures and not in all."""
    found = []
    for there, named_ in zip(truth.astype(bool).T, said.astype(bool).T, strict=True):
        if there.all() or not there.any():
            continue
        hits = float((there & named_).sum())
        precision = hits / named_.sum() if named_.any() else 0.0
        found.append((precision, hits / there.sum(), 2 * hits / (named_.sum() + there.sum())))
    return [float(value) for value in np.mean(found, axis=0)]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(measured(ensemble))


def test_thresholds_are_shares_or_the_middle_of_the_widest_gap() -> None:
    votes = np.array([[0.9, 0.1, 0.2, 0.75], [0.0, 0.05, 0.55, 0.5], [0.45, 0.45, 0.45, 0.1]])
    one = Scored(votes[None].astype(np.float32), np.zeros((3, 4), np.int8))
    np.testing.assert_array_equal(named(one, "0.4"), votes.astype(np.float32) > 0.4)
    np.testing.assert_array_equal(
        named(one, ADAPTIVE), np.array([[1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 0]], dtype=bool)
    )


@pytest.mark.parametrize("teachers", [BASELINE, *TEACHERS])
def test_tables_without_a_check_are_those_of_a_textbook(rows: list[Row], teachers: int) -> None:
    test = ensemble(teachers).test
    mean = test.probabilities.astype(np.float64).mean(axis=0)
    overall = found(rows, "5.1", teachers)
    assert overall["mAP"] == pytest.approx(
        average_precision_score(test.truth, mean, average="macro"), abs=1e-9
    )
    for threshold in ("0.2", "0.4", "0.6"):
        said = mean > float(threshold)
        row = found(rows, "5.2", teachers, threshold, "")
        assert [row["P"], row["R"], row["F1"]] == pytest.approx(three(test.truth, said), abs=1e-9)
        silent = int((said.sum(axis=0) == 0).sum())
        assert row["never_named"] == silent
        by_one = precision_score(test.truth, said, average="macro", zero_division=1)
        assert row["P_if_one"] == pytest.approx(by_one)
        if silent < LABELS:
            spoken = said.any(axis=0)
            of_named = three(test.truth[:, spoken], said[:, spoken])[0]
            assert row["P_of_named"] == pytest.approx(of_named)
        else:
            assert row["P_of_named"] == ""


def test_the_best_threshold_is_chosen_on_validation_and_never_on_tests(rows: list[Row]) -> None:
    for teachers in (BASELINE, *TEACHERS):
        own = ensemble(teachers)
        best = best_threshold(own.validation)
        assert best == max(
            ("0.2", "0.4", "0.6", ADAPTIVE),
            key=lambda name: three(own.validation.truth, named(own.validation, name))[2],
        )
        assert found(rows, "5.1", teachers)["th_e"] == best

    def other_tests(teachers: int) -> EnsembleScores:
        return replace(ensemble(teachers), test=scored(2, 77))

    other = next(measured(other_tests))
    assert other["th_e"] == found(rows, "5.1", BASELINE)["th_e"]
    assert other["F1"] != found(rows, "5.1", BASELINE)["F1"]


def test_teachers_by_themselves_are_averaged(rows: list[Row]) -> None:
    test = ensemble(20).test
    each = np.array([three(test.truth, own > 0.5) for own in test.probabilities])
    row = found(rows, "5.1", 20)
    assert [row["alone_P"], row["alone_R"], row["alone_F1"]] == pytest.approx(each.mean(axis=0))
    ranked = [average_precision_score(test.truth, own) for own in test.probabilities]
    assert row["alone_mAP_deviation"] == pytest.approx(np.std(ranked, ddof=1))


@pytest.mark.parametrize("check", ["0.4", "0.6", HALF])
def test_with_a_check_both_are_scored_on_the_same_mixtures(rows: list[Row], check: str) -> None:
    test, baseline = ensemble(10).test, ensemble(BASELINE)
    most = test.mean().max(axis=1)
    passed = most >= (np.sort(most)[-(ROWS // 2)] if check == HALF else float(check))
    row = found(rows, "5.3", 10, "0.2", check)
    assert row["answered"] == pytest.approx(passed.mean())
    if check == HALF:
        assert row["answered"] == 0.5
    said = test.mean() > 0.2
    own = three(test.truth[passed], said[passed])
    assert [row["P"], row["R"], row["F1"]] == pytest.approx(own)
    alone = named(baseline.test, best_threshold(baseline.validation))
    same = three(test.truth[passed], alone[passed])
    assert [row["baseline_P"], row["baseline_R"], row["baseline_F1"]] == pytest.approx(same)
    asked = three(test.truth, said & passed[:, None])
    assert [row["asked_P"], row["asked_R"], row["asked_F1"]] == pytest.approx(asked)


def test_all_rows_of_the_thesis_are_there(rows: list[Row]) -> None:
    places = {(row["table"], row["teachers"], row["th_e"], row["th_c"]) for row in rows}
    assert {("5.2", teachers, threshold, "") for teachers, threshold in TABLE_5_2} <= places
    assert {("5.3", *key) for key in TABLE_5_3} <= places
    # What is printed goes together: F1 of means is not a mean of F1, but never above both.
    for values in (*TABLE_5_2.values(), *TABLE_5_3.values()):
        assert values[2] <= max(values[:2])


@pytest.mark.slow
def test_orderings_are_differences_of_one_seed() -> None:
    seeds = {
        seed: list(measured(lambda teachers, seed=seed: ensemble(teachers, seed)))
        for seed in (1, 2, 3)
    }  # type: ignore[misc]
    rows = [{"seed": seed} | row for seed, each in seeds.items() for row in each]
    listed = {(each.said, each.what): each for each in orderings(rows)}
    one = listed["Raw mAP falls with more teachers", "10 − 20"]
    assert one.theirs == pytest.approx(0.219 - 0.199)
    by_hand = [
        float(found(each, "5.1", 10)["mAP"]) - float(found(each, "5.1", 20)["mAP"])
        for each in seeds.values()
    ]
    assert one.ours == estimate(by_hand)
    rises = listed["Precision rises with more teachers", "th 0.6: 50 − 10"]
    assert rises.theirs == pytest.approx(0.880 - 0.683)
    by_hand = [
        float(found(each, "5.2", 50, "0.6", "")["P"])
        - float(found(each, "5.2", 10, "0.6", "")["P"])
        for each in seeds.values()
    ]
    assert rises.ours == estimate(by_hand)
    beats = listed[
        "With a check an ensemble is above the baseline",
        "F1, 50, 0.2 + 0.6: its answers − the baseline's on everything",
    ]
    assert beats.theirs == pytest.approx(0.284 - 0.278)


@pytest.mark.parametrize(
    ("values", "no_gain", "verdict"),
    [
        ([0.1, 0.11, 0.12], False, CONFIRMED),
        ([-0.1, -0.11, -0.12], False, REFUTED),
        ([0.1, -0.11, 0.12], False, UNDECIDED),
        ([0.1], False, "one seed"),
        ([-0.02, -0.021, -0.019], True, CONFIRMED),
        ([0.001, 0.002, 0.003], True, CONFIRMED),
        ([0.05, 0.051, 0.049], True, REFUTED),
        ([0.05, -0.051, 0.049], True, UNDECIDED),
    ],
)
def test_verdicts_are_those_of_the_interval(
    values: list[float], no_gain: bool, verdict: str
) -> None:
    ours = estimate(values)
    claim = study.no_gain("", "", ours) if no_gain else Claim("", "", None, ours)
    assert claim.verdict == verdict


def test_balanced_batches_bring_rare_labels_as_often() -> None:
    truth = np.zeros((1000, 3), dtype=np.int8)
    truth[:900, 0] = truth[900:990, 1] = truth[990:, 2] = 1
    assert study.most_over_least(truth, True, 1) == pytest.approx(1, abs=0.01)
    assert study.most_over_least(truth, False, 1) == pytest.approx(90, rel=0.1)


def tiny(folder: Path, cache: Path) -> TaggerStudy:
    size = TaggerStudySize(500, 40, 50, 60)
    return TaggerStudy(folder, cache, size, LONG_TAIL, MelSettings(8000, 512, 512, 8, 1.0))


@pytest.mark.slow
def test_everything_is_written_and_the_second_time_nothing_is_done_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = TaggerWork(tiny(folder, tmp_path / "cache"), 1, Teaching(LearnerKind.LINEAR))
    outcome = study.reproduce(work)
    files = write(outcome, tmp_path / "out")
    assert sorted(path.name for path in files) == sorted(files_of(study.NAME))
    assert "Linear taggers have no recipe" in outcome.note
    assert len([row for row in outcome.rows if row["table"] == "5.2"]) == len(TABLE_5_2)

    def never(*args: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(study, "measured", never)
    again = study.reproduce(work)
    assert again.note == outcome.note
    assert list(again.rows) == list(outcome.rows)
    with pytest.raises(AssertionError, match="measured again"):
        study.reproduce(replace(work, seeds=2))


@pytest.mark.slow
def test_recipes_differ_in_one_thing_each(folder: Path, tmp_path: Path) -> None:
    work = TaggerWork(tiny(folder, tmp_path / "cache"), 1, replace(NETWORKS, steps=3))
    rows = study.of_seed(work, 1)
    assert [row["recipe"] for row in rows] == list(study.RECIPES)
    assert len({row["mAP"] for row in rows[:-1]}) == len(rows) - 1
    # Before validation was looked at for the first time there is nothing to adapt to.
    assert rows[-1]["mAP"] == rows[0]["mAP"]
    gains = study.gains(rows)
    assert gains[0].ours == estimate([float(rows[0]["mAP"]) - float(rows[1]["mAP"])])
    assert rows[0]["most_over_least"] != rows[2]["most_over_least"]
    assert rows[0]["most_over_least"] == rows[1]["most_over_least"]


def test_work_is_checked(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidParametersError, match="seeds=0"):
        TaggerWork(tiny(folder, tmp_path), 0)
    with pytest.raises(InvalidParametersError, match="processes=0"):
        TaggerWork(tiny(folder, tmp_path), processes=0)


@pytest.mark.parametrize("name", ["audioset-ensemble", "audioset-student"])
@pytest.mark.parametrize(
    ("options", "said"),
    [([], "nowhere"), (["--seeds", "0"], "seeds=0"), (["--processes", "0"], "processes=0")],
)
def test_commands_name_what_is_wrong_before_anything_is_trained(
    name: str, options: list[str], said: str, tmp_path: Path
) -> None:
    words = ("--out", tmp_path / "out", "--teachers", "linear", "--data", "nowhere")
    refused = earshot("reproduce", name, *words, *options)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not list(tmp_path.rglob("ensemble-*"))
