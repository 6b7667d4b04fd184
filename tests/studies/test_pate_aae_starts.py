"""Generators of spoken digits with a public start: what that is and what it does not cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.echoes import quiet

from earshot_studies.pate_aae import makers, recipes
from earshot_studies.pate_aae.generators.origin import PUBLIC
from earshot_studies.pate_aae.generators.pate_gan import Ensemble, queries
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network
from earshot_studies.pate_aae.generators.start import Start
from earshot_studies.pate_aae.split import LabelledClips, Split
from earshot_studies.pate_aae.systems import PublicationBudget, System, TrainingOrder

TINY = GeneratorSettings(Network.DENSE, width=8, latent=2, batch=4, critic_width=8, steps=2)
RECIPE = makers.GeneratorRecipes(
    open=TINY, noisy=TINY, judged=TINY, voted=TINY, teachers=Ensemble(teachers=3, width=4),
    start=replace(TINY, steps=3), voted_started=replace(TINY, jitter=0.1),
)  # fmt: skip
PAIRS = {
    System.STARTED_PRIVATE: System.PRIVATE,
    System.STARTED_PATE_GAN: System.PATE_GAN,
    System.STARTED_DP_GAN: System.DP_GAN,
}
TRAININGS = {
    System.PRIVATE: "train_private_autoencoder",
    System.PATE_GAN: "train_pate_gan",
    System.DP_GAN: "train_dp_gan",
}


def clips(count: int, seed: int) -> LabelledClips:
    return LabelledClips(moving_bands(count, seed=seed), np.arange(count) % 2)


SPLIT = Split(("a", "b"), "ann", clips(8, 1), clips(2, 2), clips(12, 3), clips(2, 4))


def order(tmp_path: Path, epsilon: float | None = 5.0, seed: int = 1) -> TrainingOrder:
    budget = None if epsilon is None else PublicationBudget(epsilon, 1e-3)
    return TrainingOrder(SPLIT, budget, seed, tmp_path / "checkpoint", quiet)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What private trainings are called with; nothing is trained by them."""
    seen: list[Any] = []

    def watched(*arguments: Any, **names: Any) -> Any:
        seen.append((arguments, names))
        return "a generator"

    for name in TRAININGS.values():
        monkeypatch.setattr(makers, name, watched)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("system", PAIRS, ids=lambda system: system.name)
def test_a_start_is_public_and_buys_no_other_noise(
    system: System, tmp_path: Path, given: list[Any]
) -> None:
    own = makers.makers(RECIPE)
    own[system](order(tmp_path))
    own[PAIRS[system]](order(tmp_path))
    (started, names), (bare, without) = given
    assert without["start"] is None
    start = names["start"]
    assert isinstance(start, Start)
    assert start.origin is PUBLIC
    np.testing.assert_array_equal(start.clips, SPLIT.public.pictures)
    # The same clips, noise, steps and origin; of votes also the same number of queries.
    np.testing.assert_array_equal(started[0], bare[0])
    assert started[2:] == bare[2:]
    assert replace(started[1], jitter=0.0) == replace(bare[1], jitter=0.0)
    assert queries(started[1]) == queries(bare[1])
    noise = started[3].deviation / 3 if system is System.STARTED_PATE_GAN else started[2].noise
    half = 2 if system is System.STARTED_PATE_GAN else 1
    assert start.share == pytest.approx(1 / (1 + (noise / 2) ** 2) / half)


@pytest.mark.slow
def test_public_networks_are_learned_once_for_a_seed(tmp_path: Path, given: list[Any]) -> None:
    own = makers.makers(RECIPE)
    for epsilon, seed in ((5.0, 1), (50.0, 1), (5.0, 2)):
        for system in (System.STARTED_DP_GAN, System.STARTED_PATE_GAN):
            own[system](order(tmp_path, epsilon, seed))
    one, two, three, four, other, _ = (names["start"].networks for _, names in given)
    assert one is two is three is four
    assert one is not other
    # What "GAN, public" makes is what they start with.
    public: Any = own[System.PUBLIC_GAN](order(tmp_path, None, 2))
    assert public.decoder is other.decoder
    assert public.origin is PUBLIC


def test_the_more_noise_the_less_it_is_heard() -> None:
    shares = [recipes.share(noise) for noise in (0.0, 0.5, 2.0, 10.0, 1000.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[2] == 0.5
    # However much noise there is, no more than noise of 1 is left of it in a step.
    assert all(
        share * noise <= 1 for share, noise in zip(shares[1:], (0.5, 2, 10, 1000), strict=True)
    )
    assert recipes.voted_share(0.0) == 0.5


def test_recipes_tell_a_start_apart() -> None:
    words = RECIPE.described
    assert set(words) == set(System)
    for system, bare in PAIRS.items():
        assert words[system] != words[bare]
        assert replace(RECIPE, start=TINY).described[system] != words[system]
        assert replace(RECIPE, start=TINY).described[bare] == words[bare]
