"""Ensembles of taggers: what each teacher learned from, what is kept, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from support.tagging_folder import LABELS

from earshot_protocol.errors import InvalidParametersError
from earshot_studies.muschiol.taggers import ensembles
from earshot_studies.muschiol.taggers.ensembles import EnsembleScores, prepared
from earshot_studies.muschiol.taggers.linear import PENALTY, FeatureScale, LinearTagger
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL
from earshot_studies.muschiol.taggers.school import NETWORKS, LearnerKind, School, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.mel_power import FLOOR, MelSettings

MEL = MelSettings(8000, 512, 512, 8, 1.0)
SIZE = TaggerStudySize(120, 40, 50, 60)
LINEAR = Teaching(LearnerKind.LINEAR)
TEACHERS = 4


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> TaggerStudy:
    return TaggerStudy(folder, tmp_path / "cache", SIZE, LONG_TAIL, MEL)


def same(one: EnsembleScores, other: EnsembleScores) -> bool:
    return all(
        np.array_equal(getattr(one, side).probabilities, getattr(other, side).probabilities)
        for side in ("validation", "queries", "test")
    )


def test_each_teacher_is_a_logistic_regression_on_its_own_mixtures(study: TaggerStudy) -> None:
    found = prepared(study, TEACHERS, 3, LINEAR)
    material = study.material(3)
    assert found.labels == LABELS

    def features(power: np.ndarray) -> np.ndarray:
        # In single precision, as a band of a pure tone has hardly any deviation to divide by.
        logs = np.log(power + np.float32(FLOOR))
        return np.hstack([logs.mean(axis=1), logs.std(axis=1)]).astype(np.float64)

    public = features(material.validation.power())
    for side in ("validation", "queries", "test"):
        mixed = getattr(material, side)
        scored = getattr(found, side)
        np.testing.assert_array_equal(scored.truth, mixed.truth)
        assert scored.probabilities.shape == (TEACHERS, len(mixed), len(LABELS))
        rows = (features(mixed.power()) - public.mean(axis=0)) / public.std(axis=0)
        for number in range(TEACHERS):
            own = material.teacher(number, TEACHERS)
            learned = (features(own.power()) - public.mean(axis=0)) / public.std(axis=0)
            for label in range(len(LABELS)):
                model = LogisticRegression(C=PENALTY, max_iter=500)
                model.fit(learned, own.truth[:, label])
                np.testing.assert_allclose(
                    scored.probabilities[number, :, label],
                    model.predict_proba(rows)[:, 1],
                    atol=2e-3,
                )


def test_the_mean_is_over_teachers(study: TaggerStudy) -> None:
    test = prepared(study, TEACHERS, 1, LINEAR).test
    by_hand = sum(each.astype(np.float64) for each in test.probabilities)
    np.testing.assert_allclose(test.mean(), by_hand / TEACHERS, rtol=1e-12)


def test_a_label_nobody_met_is_never_named() -> None:
    generator = np.random.default_rng(0)
    power = generator.exponential(size=(30, 4, 6)).astype(np.float32)
    truth = np.zeros((30, 2), dtype=np.int8)
    truth[::2, 0] = 1
    tagger = LinearTagger.trained(power, truth, FeatureScale.of(power))
    likely = tagger.probabilities(power)
    assert (likely[:, 1] == 0).all()
    assert likely.dtype == np.float32
    assert ((likely[:, 0] > 0) & (likely[:, 0] < 1)).all()


def test_what_is_kept_is_not_trained_again(
    study: TaggerStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepared(study, TEACHERS, 1, LINEAR)

    def never(*args: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(School, "taught", never)
    assert same(first, prepared(study, TEACHERS, 1, LINEAR))
    others = (
        (study, TEACHERS, 2),
        (study, TEACHERS + 1, 1),
        (replace(study, size=replace(SIZE, test=61)), TEACHERS, 1),
        (replace(study, recipe=replace(LONG_TAIL, tail=0.5)), TEACHERS, 1),
        (replace(study, mel=replace(MEL, bands=9)), TEACHERS, 1),
    )
    for each, teachers, seed in others:
        with pytest.raises(AssertionError, match="trained again"):
            prepared(each, teachers, seed, LINEAR)


def test_a_killed_run_goes_on_where_it_was(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensembles, "_AT_ONCE", {LearnerKind.LINEAR: 2})
    study = TaggerStudy(folder, tmp_path / "whole", SIZE, LONG_TAIL, MEL)
    whole = prepared(study, 6, 1, LINEAR)
    taught = School.taught
    calls = []

    def killed(self: School, power: np.ndarray, targets: np.ndarray, seed: int) -> object:
        calls.append(seed)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return taught(self, power, targets, seed)

    monkeypatch.setattr(School, "taught", killed)
    other = replace(study, cache=tmp_path / "killed")
    with pytest.raises(KeyboardInterrupt):
        prepared(other, 6, 1, LINEAR)
    told: list[tuple[int, int]] = []
    again = prepared(
        other, 6, 1, LINEAR, progress=lambda what, done, all_: told.append((done, all_))
    )
    # Two of six were kept; the third, whose file was not finished, is trained again.
    assert len(calls) == 4 + 4
    assert told == [(2, 6), (4, 6), (6, 6)]
    assert same(whole, again)
    assert [path.name for path in other.cache.glob("ensemble-*")] == [
        path.name for path in study.cache.glob("ensemble-*")
    ]


@pytest.mark.parametrize("teachers", [0, 13, 1000])
def test_an_ensemble_larger_than_its_mixtures_is_refused_before_sound_is_read(
    teachers: int, tmp_path: Path
) -> None:
    study = TaggerStudy(tmp_path / "nowhere", tmp_path / "cache", SIZE, LONG_TAIL, MEL)
    with pytest.raises(InvalidParametersError, match="teachers"):
        prepared(study, teachers, 1, LINEAR)
    assert not (tmp_path / "cache").exists()


def test_teachings_are_checked() -> None:
    with pytest.raises(InvalidParametersError, match="kind='forest': must be one of linear, small"):
        Teaching("forest")  # type: ignore[arg-type]
    with pytest.raises(InvalidParametersError, match="steps=0"):
        Teaching(steps=0)
    assert Teaching("linear").kind is LearnerKind.LINEAR  # type: ignore[arg-type]


@pytest.mark.slow
def test_networks_are_teachers_whatever_the_number_of_processes(study: TaggerStudy) -> None:
    few = replace(NETWORKS, steps=4)
    alone = prepared(study, 2, 1, few)
    assert ((alone.test.probabilities >= 0) & (alone.test.probabilities <= 1)).all()
    assert not np.allclose(alone.test.probabilities[0], alone.test.probabilities[1])
    together = prepared(replace(study, cache=study.cache / "two"), 2, 1, few, processes=2)
    for side in ("validation", "queries", "test"):
        np.testing.assert_allclose(
            getattr(alone, side).probabilities, getattr(together, side).probabilities, atol=1e-5
        )
