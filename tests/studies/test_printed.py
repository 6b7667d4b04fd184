"""The thesis's phase as it is printed: noise as thin as is said of it, and all else as ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_simulations.phases.settings import (
    NO_NOISE,
    Discovery,
    PolicyChoice,
    Settings,
    SummationChoice,
    whole_budget,
)
from earshot_simulations.sweeps.phase import (
    ARI_TEST,
    ARI_TRAIN,
    CENTROID_NAMES,
    NAMES,
    NOTHING,
    simulated,
)
from earshot_studies.liebenow.contenders import pooled
from earshot_studies.liebenow.printed import PrintedVote, as_printed

QUIET = Settings(
    phones=60,
    recordings=30,
    scenes=4,
    labelled=0.5,
    corrupted=0.0,
    budget=whole_budget("none"),
    policy=PolicyChoice.ANYTHING,
    discovery=Discovery.LOCAL,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=4,
)


def test_the_printed_noise_is_n_times_thinner_than_claimed() -> None:
    vote = PrintedVote(epsilon=1.0, votes=3, honest_survivors=50)
    claimed = 2 * 3**2  # of Laplace noise of scale v/ε
    noise = vote.noise(50, (40_000,), np.random.default_rng(1))
    assert noise.mean() == pytest.approx(0, abs=0.02)
    assert noise.var() == pytest.approx(claimed / 50, rel=0.03)
    # And it has another form: Laplace noise has an excess kurtosis of 3, a sum of 50 one of 3/50.
    kurtosis = np.mean(noise**4) / noise.var() ** 2 - 3
    assert kurtosis == pytest.approx(3 / 50, abs=0.1)


def test_the_corrected_noise_has_the_variance_that_is_claimed() -> None:
    ours = BallotSum(epsilon=1.0, votes=3, honest_survivors=50)
    random = np.random.default_rng(2).bytes
    noise = sum(ours.noise_share((4000,), random) for _ in range(50))
    assert np.var(noise) == pytest.approx(ours.noise(50).deviation ** 2, rel=0.1)
    # Its scale is that of what one recording changes, 2, where the thesis has v.
    assert ours.noise(50).deviation ** 2 == pytest.approx(2 * 2**2, rel=0.05)


@pytest.mark.slow
def test_without_noise_both_programs_find_the_same() -> None:
    # As many scenes as centroids are kept nearly, so that none is in many parts.
    settings = replace(QUIET, scenes=8)
    printed, ours = as_printed(settings), simulated(settings)
    for name in (ARI_TRAIN, ARI_TEST, NAMES, "centroids"):
        assert printed[name] == ours[name], name
    # A centroid that nobody has a label for is named by chance as printed, and not by ours.
    assert 0.5 < float(ours[CENTROID_NAMES] or 0) <= float(printed[CENTROID_NAMES] or 0)
    assert float(printed[ARI_TEST] or 0) > 0.8


def test_where_optics_finds_nothing_the_printed_phase_finds_nothing_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(*_: object) -> None:
        raise NothingFoundError("no cluster")

    monkeypatch.setattr(Optics, "discover", nothing)
    assert as_printed(QUIET) == NOTHING


@pytest.mark.slow
def test_as_printed_names_by_next_to_no_noise_what_ours_leaves_unnamed() -> None:
    budget = replace_budget(label_vote=0.2)
    settings = replace(QUIET, budget=budget)
    printed, ours = as_printed(settings), simulated(settings)
    assert printed[ARI_TEST] == ours[ARI_TEST]
    assert float(printed[NAMES] or 0) > 0.8
    assert float(ours[NAMES] or 0) < 0.5


@pytest.mark.slow
def test_without_labels_the_printed_phase_names_by_chance() -> None:
    settings = replace(QUIET, labelled=0.0, budget=replace_budget(label_vote=0.5))
    named = [float(as_printed(replace(settings, seed=seed))[NAMES] or 0) for seed in range(6)]
    assert 0 < np.mean(named) < 0.6
    assert simulated(settings)[NAMES] == 0


def test_pooled_recordings_are_what_one_could_have() -> None:
    found = pooled(replace(QUIET, scenes=10))
    assert float(found[ARI_TEST] or 0) > 0.95
    assert float(found[NAMES] or 0) > 0.95
    assert found["centroids"] == 10


def replace_budget(**changes: float) -> object:
    import msgspec

    assert QUIET.budget.label_vote == NO_NOISE
    return msgspec.structs.replace(QUIET.budget, **changes)
