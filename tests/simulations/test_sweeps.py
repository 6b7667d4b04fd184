"""Sweeps: what is finished is kept, whatever ends the run; and what several seeds say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from support.examples import examples

from earshot_protocol import distribution
from earshot_protocol.phases import discovery_budget
from earshot_simulations.phases.run import PHASE_FAILED
from earshot_simulations.phases.settings import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.sweeps import phase, sweep
from earshot_simulations.sweeps.estimate import SHARE, estimate, paired
from earshot_simulations.sweeps.phase import NOTHING, SIMULATED, centroid_accuracy
from earshot_simulations.sweeps.rows import FILE, Figures
from earshot_simulations.sweeps.sweep import Arm, Measure, measured

TINY = Settings(
    phones=24,
    recordings=10,
    scenes=3,
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    discovery=Discovery.LOCAL,
    summation=SummationChoice.IDEAL,
    jobs=1,
)


def counting(calls: list[int], stop_at: int | None = None) -> Measure:
    """Measures nothing but the seed, and is interrupted at one of them."""

    def measure(settings: Settings) -> Figures:
        if settings.seed == stop_at:
            raise KeyboardInterrupt
        calls.append(settings.seed)
        return {"value": float(settings.seed)}

    return Measure("counting", measure)


def arm(measure: Measure, *seeds: int, **changes: object) -> Arm:
    base = replace(TINY, **changes)  # type: ignore[arg-type]
    return Arm({}, measure, tuple(replace(base, seed=seed) for seed in seeds))


def test_what_is_finished_is_not_done_again(tmp_path: Path) -> None:
    calls: list[int] = []
    file = tmp_path / FILE
    with pytest.raises(KeyboardInterrupt):
        measured([arm(counting(calls, stop_at=3), 1, 2, 3, 4)], file)
    assert calls == [1, 2]
    shown: list[tuple[str, int, int]] = []
    found = measured(
        [arm(counting(calls), 1, 2, 3, 4)],
        file,
        progress=lambda what, done, total, line=None: shown.append((what, done, total)),
    )
    assert calls == [1, 2, 3, 4]
    assert [row["value"] for row in found[0]] == [1, 2, 3, 4]
    assert shown == [("phases", 2, 4), ("phases", 3, 4), ("phases", 4, 4)]


def test_a_phase_that_arms_share_is_done_once(tmp_path: Path) -> None:
    calls: list[int] = []
    measure = counting(calls)
    found = measured([arm(measure, 2, 1), arm(measure, 1, 2, 3)], tmp_path / FILE)
    assert sorted(calls) == [1, 2, 3]
    assert [[row["value"] for row in each] for each in found] == [[2, 1], [1, 2, 3]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_know_their_phases_by_all_that_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    calls: list[int] = []
    sound = tmp_path / "sound" / "rain"
    sound.mkdir(parents=True)
    (sound / "1.wav").write_bytes(b"1")
    heard = replace(TINY, data=str(tmp_path / "sound"), seed=1)
    file = tmp_path / FILE

    def done(settings: Settings, name: str = "counting") -> bool:
        """Whether it had to be measured."""
        before = len(calls)
        measure = replace(counting(calls), name=name)
        measured([Arm({}, measure, (replace(settings, jobs=jobs),))], file)
        return len(calls) > before

    assert done(heard)
    assert not done(replace(heard, jobs=3 - jobs))
    assert done(replace(heard, epsilon=3.0))
    assert done(heard, "another measure")
    (tmp_path / "sound").rename(tmp_path / "moved")
    moved = replace(heard, data=str(tmp_path / "moved"))
    assert not done(moved)
    (tmp_path / "moved" / "rain" / "2.wav").write_bytes(b"2")
    sweep._folder_digest.cache_clear()  # as another run would
    assert done(moved)
    monkeypatch.setattr(distribution, "version", lambda: "9.9.9")
    assert done(moved)
    assert json.loads(file.read_text().splitlines()[-1])["configuration"]["version"] == "9.9.9"


@pytest.mark.slow
def test_processes_change_nothing(tmp_path: Path) -> None:
    arms = [
        Arm({}, SIMULATED, tuple(replace(TINY, seed=seed, labelled=0.8) for seed in (1, 2))),
        Arm({}, SIMULATED, (replace(TINY, discovery=Discovery.SECURE_SUM, seed=1),)),
    ]
    alone, together = (measured(arms, tmp_path / str(count), count) for count in (1, 2))
    assert alone == together
    assert 0 < float(alone[0][0]["ari_test"] or 0) <= 1
    assert alone[0][0]["epsilon_recording"] == pytest.approx(2.5)
    assert alone[1][0]["epsilon_phone"] == pytest.approx(discovery_budget.EPSILON, rel=0.05)
    assert alone[0][0]["failure"] is None


@pytest.mark.parametrize(
    ("told", "kept"), [(f"{PHASE_FAILED}too few", True), ("interrupted in the step 'hear'", False)]
)
def test_a_failed_phase_is_a_figure_and_an_interrupted_one_is_none(
    monkeypatch: pytest.MonkeyPatch, make_run: Callable[..., object], told: str, kept: bool
) -> None:
    ended = make_run(interrupted=told, ari_test=None)
    monkeypatch.setattr(phase, "simulate", lambda settings: ended)
    if kept:
        figures = SIMULATED.run(TINY)
        assert {name: figures[name] for name in NOTHING} == NOTHING
        assert figures["failure"] == told
    else:
        with pytest.raises(KeyboardInterrupt):
            SIMULATED.run(TINY)


def test_centroids_are_named_rightly_by_the_recording_next_to_them() -> None:
    points = np.array([[0, 0], [1, 0], [0, 1]], np.float32)
    scenes = np.array([2, 0, 1])
    centroids = np.array([[0.1, 0.1], [0.9, 0.2], [0.2, 0.8], [0, 2]], np.float32)
    labels = np.array([2, 1, 1, -1])
    assert centroid_accuracy(centroids, labels, points, scenes) == 0.5


def test_intervals_are_students_and_pairs_are_of_one_seed() -> None:
    values, others = [0.5, 0.7, 0.9, 0.6], [0.45, 0.66, 0.84, 0.57]
    found = estimate(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.mean, found.seeds) == (pytest.approx(0.675), 4)
    assert found.wide == pytest.approx((high - low) / 2)
    # Apart they overlap; seed by seed one is ahead every time.
    assert not estimate([0.03, -0.02, 0.01]).clear
    assert paired(values, others).clear
    assert paired(values, others).mean == pytest.approx(0.045)
    assert str(estimate([0.25])) == "0.250"
    assert not estimate([0.25]).clear
    with pytest.raises(ValueError, match="argument"):
        paired(values, others[:3])


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-12, 1 - 1e-12]), min_size=2),
    st.sampled_from([SHARE, (-0.5, 1.0)]),
)
def test_the_interval_of_a_share_keeps_to_its_range(
    values: list[float], within: tuple[float, float]
) -> None:
    low, high = within
    found = estimate([low + (high - low) * value for value in values], within)
    assert found.ends is not None
    least, most = found.ends
    assert low - 1e-9 <= least <= found.mean + 1e-9
    assert found.mean - 1e-9 <= most <= high + 1e-9


def test_the_interval_of_a_share_is_students_on_the_logit_of_its_mean() -> None:
    values = [0.2, 0.5, 0.6, 0.9]
    mean, error = np.mean(values), stats.sem(values)
    low, high = stats.t.interval(0.95, 3, special.logit(mean), error / (mean * (1 - mean)))
    found = estimate(values, SHARE)
    assert found.ends == pytest.approx((special.expit(low), special.expit(high)))
    assert str(found) == "0.550 (0.160 to 0.887)"
    # Student's on the share itself leaves it.
    wild = [0.05, 0.1, 0.9]
    assert max(estimate(wild).ends or ()) > 1
    assert min(estimate(wild).ends or ()) < 0
    # In any other range, what the same shares would have.
    wider = estimate([1.5 * value - 0.5 for value in values], (-0.5, 1.0)).ends
    assert wider == pytest.approx([1.5 * end - 0.5 for end in found.ends or ()])
    assert estimate([1.0, 1.0], SHARE).ends == (1.0, 1.0)
    assert estimate([0.4], SHARE).ends is None
    assert str(estimate([math.inf, math.inf])) == "∞"
    assert str(estimate([-math.inf])) == "−∞"
    assert str(paired([math.inf], [math.inf])) == "–"  # of two infinite costs, nothing is known


@pytest.mark.parametrize("seeds", [3, 5, 20])
@pytest.mark.parametrize("shape", [(2, 2), (20, 5), (0.5, 0.5), (9, 1)])
def test_the_interval_of_a_share_holds_the_true_mean(
    seeds: int, shape: tuple[float, float]
) -> None:
    """Shares by a beta distribution, whose mean is known; a bootstrap of three covers 0.7."""
    random = np.random.default_rng([seeds, *(round(10 * each) for each in shape)])
    mean, runs = shape[0] / sum(shape), 1000
    held = 0
    for values in random.beta(*shape, (runs, seeds)):
        least, most = estimate(values.tolist(), SHARE).ends or (0.0, 0.0)
        held += least <= mean <= most
    assert held / runs > 0.9
