"""Mixtures of mel powers: whose recordings, how loud, and what is in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.tagging_folder import LABELS, write_tagging_folder

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.kit.mixtures.mixing import LEVEL, MixingRecipe
from earshot_studies.kit.mixtures.sources import BACKGROUND, Side, open_sources
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL, draw
from earshot_studies.muschiol.taggers.powers import Powers, open_powers, powers
from earshot_studies.muschiol.taggers.study import HEARD, TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.mel_power import MelSettings, mel_power

MEL = MelSettings(8000, 512, 512, 8, 1.0)


def impulses(labels: int = 5, recordings: int = 3) -> Powers:
    """A second of side s, label l and recording r has power in a band of its own alone."""
    label, side, _ = (
        each.ravel()
        for each in np.meshgrid(
            np.arange(-1, labels), np.arange(4), np.arange(recordings), indexing="ij"
        )
    )
    power = np.zeros((len(label), 1, len(label)), dtype=np.float32)
    power[np.arange(len(label)), 0, np.arange(len(label))] = 1
    names = tuple(f"l{number}" for number in range(labels))
    return Powers(label, side, np.arange(len(label)), names, power)


@pytest.mark.parametrize("side", list(Side), ids=[side.name for side in Side])
def test_a_mixture_is_what_its_truth_says_of_its_own_side_alone(side: Side) -> None:
    all_powers = impulses()
    mixed = draw(all_powers, side, 400, LONG_TAIL, np.random.default_rng(3))
    power = mixed.power()[:, 0]
    np.testing.assert_allclose(power.sum(axis=1), 1, rtol=1e-6)
    for row, truth in zip(power, mixed.truth, strict=True):
        sounding = np.flatnonzero(row)
        assert set(all_powers.side[sounding]) == {side}
        labels = all_powers.label[sounding]
        named = sorted(labels[labels != BACKGROUND])
        assert named == np.flatnonzero(truth).tolist()
        assert (labels == BACKGROUND).sum() == 1


def test_levels_are_as_the_recipe_has_them() -> None:
    all_powers = impulses()
    recipe = MixingRecipe((0.0, 1.0), 0.0, 3.0, 10.0, 0.0)
    mixed = draw(all_powers, Side.TEST, 4000, recipe, np.random.default_rng(4))
    power = mixed.power()[:, 0]
    behind = power[:, (all_powers.label == BACKGROUND)].sum(axis=1)
    below = 10 * np.log10((power.sum(axis=1) - behind) / behind)
    assert stats.kstest(below, stats.uniform(0, 10).cdf).pvalue > 1e-3
    voices = np.sort(power[:, all_powers.label != BACKGROUND], axis=1)[:, -2:]
    apart = 10 * np.log10(voices[:, 1] / voices[:, 0])
    # |U − V| of two uniforms over 6 dB has a triangular law.
    assert stats.kstest(apart, stats.triang(0, 0, 6).cdf).pvalue > 1e-3


def test_labels_have_a_long_tail_and_two_on_average() -> None:
    mixed = draw(impulses(20), Side.TEACHERS, 6000, LONG_TAIL, np.random.default_rng(5))
    counts = mixed.truth.sum(axis=0)
    assert mixed.truth.sum(axis=1).mean() == pytest.approx(2, abs=0.05)
    assert set(mixed.truth.sum(axis=1)) == {1, 2, 3}
    first = draw(
        impulses(20),
        Side.TEACHERS,
        20_000,
        replace(LONG_TAIL, counts=(1.0,)),
        np.random.default_rng(5),
    ).truth.sum(axis=0)
    expected = np.arange(1, 21) ** -0.8
    assert stats.chisquare(first, 20_000 * expected / expected.sum()).pvalue > 1e-3
    assert counts[0] > 5 * counts[-1]


def test_rows_keep_what_they_are() -> None:
    mixed = draw(impulses(), Side.QUERIES, 50, LONG_TAIL, np.random.default_rng(6))
    chosen = np.array([7, 3, 49])
    np.testing.assert_array_equal(mixed.rows(chosen).power(), mixed.power()[chosen])
    np.testing.assert_array_equal(mixed.rows(chosen).truth, mixed.truth[chosen])
    assert len(mixed.rows(slice(0, 20))) == 20


def test_mixtures_that_cannot_be_are_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(InvalidParametersError, match="2 labels: a mixture has up to 3"):
        draw(impulses(2), Side.TEST, 10, LONG_TAIL, generator)
    with pytest.raises(InvalidParametersError, match="count=0"):
        draw(impulses(), Side.TEST, 0, LONG_TAIL, generator)
    there = impulses()
    gone = (there.label == 2) & (there.side == Side.QUERIES)
    lacking = Powers(
        there.label[~gone], there.side[~gone], there.recording[~gone], there.labels, there.power
    )
    with pytest.raises(InvalidInputError, match="no sound of l2 is left for queries"):
        draw(lacking, Side.QUERIES, 10, LONG_TAIL, generator)


def test_the_power_of_a_second_is_that_of_its_sound_at_one_level(
    folder: Path, tmp_path: Path
) -> None:
    found = open_powers(folder, MEL, tmp_path)
    sources = open_sources(folder, MEL.rate)
    assert found.labels == sources.labels == LABELS
    for name in ("label", "side", "recording"):
        np.testing.assert_array_equal(getattr(found, name), getattr(sources, name))
    second = sources.sound[7].astype(np.float64)
    second *= LEVEL / np.sqrt((second**2).mean())
    expected = mel_power(second[None], MEL)[0]
    np.testing.assert_allclose(found.power[7], expected, rtol=1e-3, atol=1e-6)


def test_what_was_kept_is_read_until_the_sound_or_the_settings_change(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_powers(folder, MEL, tmp_path)
    (kept,) = tmp_path.glob("powers-*.npz")
    stamp = kept.stat().st_mtime_ns
    again = open_powers(folder, MEL, tmp_path)
    assert kept.stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(first.power, again.power)
    other = open_powers(folder, replace(MEL, bands=9), tmp_path)
    assert other.power.shape[2] == 9
    assert len(list(tmp_path.glob("powers-*.npz"))) == 2
    more = folder / "free_sounds" / "doors" / "8.wav"
    more.write_bytes((more.parent / "7.wav").read_bytes())
    try:
        assert len(open_powers(folder, MEL, tmp_path).power) == len(first.power) + 1
    finally:
        more.unlink()


def test_a_label_of_one_recording_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    # Two recordings in folds 1 and 2, of which the first is held back for validation.
    folder = write_tagging_folder(tmp_path / "data", recordings=1)
    with pytest.raises(InvalidInputError, match="only one recording of hiss, whistle is left"):
        open_powers(folder, MEL, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("powers-*"))


def test_clips_of_another_length_or_rate_are_refused(folder: Path) -> None:
    sources = open_sources(folder, MEL.rate)
    for settings in (replace(MEL, seconds=2.0), replace(MEL, rate=16_000)):
        with pytest.raises(InvalidParametersError, match="must be single seconds"):
            powers(sources, settings)


def test_a_study_draws_the_same_mixtures_again_and_others_for_other_seeds(
    folder: Path, tmp_path: Path
) -> None:
    study = TaggerStudy(folder, tmp_path, TaggerStudySize(30, 11, 12, 13), LONG_TAIL, MEL)
    first, again, other = study.material(1), study.material(1), study.material(2)
    sides = ("pool", "validation", "queries", "test")
    assert [len(getattr(first, side)) for side in sides] == [30, 11, 12, 13]
    for side in sides:
        one, same, another = (getattr(each, side).power() for each in (first, again, other))
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, another)


def test_teachers_have_disjoint_shares_of_the_whole_pool(folder: Path, tmp_path: Path) -> None:
    pool = TaggerStudy(folder, tmp_path, TaggerStudySize(47, 11, 12, 13), LONG_TAIL, MEL).material(
        1
    )
    owned = [pool.teacher(number, 5) for number in range(5)]
    assert sorted(len(each) for each in owned) == [9, 9, 9, 10, 10]
    together = np.concatenate([np.column_stack([each.seconds, each.gains]) for each in owned])
    whole = np.column_stack([pool.pool.seconds, pool.pool.gains])
    np.testing.assert_array_equal(
        np.unique(together, axis=0, return_counts=True)[1],
        np.unique(whole, axis=0, return_counts=True)[1],
    )
    (baseline,) = [pool.teacher(0, 1)]
    np.testing.assert_array_equal(baseline.truth, pool.pool.truth)


def test_sizes_are_checked() -> None:
    with pytest.raises(InvalidParametersError, match="queries=0"):
        TaggerStudySize(queries=0)
    assert HEARD.shape == (32, 32)
