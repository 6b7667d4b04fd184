"""The reproduction of attacks on generators, with generators that learn nothing or repeat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from support.echoes import quiet
from support.reproduced import rows_of

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.membership.game import Records, Sampler, Train
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS
from earshot_studies.kit.outcome import write
from earshot_studies.pate_aae import attacks
from earshot_studies.pate_aae.attacked_generators import PateGanRecipe, pate_gan, warmed_up
from earshot_studies.pate_aae.attacks import AttackedSystem, AttackWork, game
from earshot_studies.pate_aae.generators import adversaries
from earshot_studies.pate_aae.generators.pate_gan import Ensemble
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

SHAPE = (3, 2)
FEW = {name: ATTACKS[name] for name in ("nearest sample", "samples within a radius")}


def clips(count: int, seed: int) -> Records:
    generator = np.random.default_rng(seed)
    return np.tanh(generator.standard_normal((count, *SHAPE))).astype(np.float32)


class Public:
    """Learns from nothing."""

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32]:
        return clips(count, seed)


def public(records: Records, seed: int) -> Sampler:
    return Public()


TRAINED: Mapping[AttackedSystem, Train] = {
    AttackedSystem.PATE_GAN: public,
    AttackedSystem.WARMED: repeating,
    AttackedSystem.AAE: repeating,
    AttackedSystem.REPEATING: repeating,
}


def work(
    folder: Path, trained: Mapping[AttackedSystem, Train] = TRAINED, trials: int = 30
) -> AttackWork:
    return AttackWork("ann", clips(100, 0), trained, trials, folder, quiet, FEW)


@pytest.mark.slow
def test_verdicts_go_by_what_was_shown_and_all_games_are_reported(tmp_path: Path) -> None:
    outcome = attacks.reproduce(work(tmp_path), 2)
    table, note, picture = write(outcome, tmp_path / "out")
    rows = rows_of(table)
    assert len(rows) == 2 * len(AttackedSystem) * len(FEW)
    stands = [row for row in rows if row["stands"] == "1"]
    assert [(row["seed"], row["generator"]) for row in stands] == [
        (seed, str(subject)) for seed in ("2026", "2027") for subject in AttackedSystem
    ]
    for row in stands:
        private = row["generator"] == AttackedSystem.PATE_GAN
        assert row["verdict"] == ("passes" if private else "fails")
        assert (float(row["epsilon_at_least"]) > 2) != private
        assert float(row["power"]) > 2
        assert float(row["area_low_95"]) <= float(row["area"]) <= float(row["area_high_95"])
    text = note.read_text(encoding="utf-8")
    assert "- PATE-GAN: passes in 2 of 2" in text
    assert f"- {AttackedSystem.WARMED}: fails in 2 of 2" in text
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_attacks_without_power_say_nothing_and_the_note_says_so(tmp_path: Path) -> None:
    outcome = attacks.reproduce(work(tmp_path, trials=8), 1)
    verdicts = {
        row["verdict"] for row in outcome.rows if row["generator"] == AttackedSystem.PATE_GAN
    }
    assert verdicts == {"says nothing"}
    assert "- PATE-GAN: says nothing in 1 of 1" in outcome.note


def test_a_killed_run_goes_on_and_other_clips_are_another_run(tmp_path: Path) -> None:
    first = work(tmp_path).rows(AttackedSystem.REPEATING, 5)

    def refused(records: Records, seed: int) -> Sampler:
        raise AssertionError

    again = work(tmp_path, dict.fromkeys(AttackedSystem, refused))
    assert again.rows(AttackedSystem.REPEATING, 5) == first
    with pytest.raises(AssertionError):
        again.rows(AttackedSystem.REPEATING, 6)
    with pytest.raises(AssertionError):
        work(tmp_path, dict.fromkeys(AttackedSystem, refused), trials=32).rows(
            AttackedSystem.REPEATING, 5
        )


def test_clips_of_a_game_are_distinct_and_only_they_are_learned_from() -> None:
    drawn = game(clips(60, 1), 8, 3)
    assert drawn.instead is not None
    every = np.concatenate([drawn.records, drawn.instead, drawn.reference])
    assert len(np.unique(every.reshape(len(every), -1), axis=0)) == 48
    assert len(drawn.always) == 0
    with pytest.raises(InvalidInputError, match="47 private clips; at least 48"):
        game(clips(47, 1), 8, 3)
    with pytest.raises(InvalidParametersError, match="trials=4"):
        game(clips(60, 1), 4, 3)


@pytest.mark.slow
def test_a_warmed_generator_differs_from_an_honest_one_in_its_start_alone() -> None:
    settings = GeneratorSettings(
        network=Network.DENSE, width=8, latent=2, critic_width=8, steps=2, batch=4, rate=1e-6
    )
    own = GeneratorSettings(
        network=Network.DENSE, width=8, latent=2, critic_width=8, steps=40, batch=12, rate=1e-2,
        averaging=0.5,
    )  # fmt: skip
    recipe = PateGanRecipe(settings, Ensemble(3, width=4, batch=2), 2.0, 1e-5)
    started, ones = adversaries.started, np.full((12, *SHAPE), 0.9, np.float32)
    honest, planted = pate_gan(recipe), warmed_up(recipe, own)
    apart = [
        np.abs(train(ones, 3).samples(20, 0) - train(-ones, 3).samples(20, 0)).mean()
        for train in (honest, planted)
    ]
    assert apart[0] < 1e-3, "at this rate two steps tell hardly anything"
    assert apart[1] > 0.05, "the decoder has met the clips"
    assert adversaries.started is started
