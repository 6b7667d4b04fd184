"""Attacks on generators whose privacy is known: none, perfect, and that of randomized answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.membership import evidence as figures
from earshot_simulations.membership.game import Game, Records, Sampler, learned_from, play
from earshot_simulations.membership.planted import Repeating, repeating
from earshot_simulations.membership.shadows import moments
from earshot_simulations.membership.suite import ATTACKS, Verdict, attacked

WIDTH = 6


def drawn(count: int, seed: int) -> Records:
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)


def game(records: int = 12, trials: int = 60, samples: int = 80, **others: Any) -> Game:
    canary = np.full((1, WIDTH), 4.0, dtype=np.float32)
    candidates = np.concatenate([canary, drawn(records - 1, 1)])
    return Game(candidates, drawn(20, 2), drawn(60, 3), None, trials, samples, **others)


@dataclass(frozen=True)
class Public:
    """Learns from nothing."""

    def samples(self, count: int, seed: int) -> Records:
        return drawn(count, seed)


@dataclass(frozen=True)
class Answers:
    """Each of the known records if its coin was won, with randomized response."""

    made: Records

    def samples(self, count: int, seed: int) -> Records:
        return np.resize(self.made, (count, self.made.shape[1])).astype(np.float32)


def randomized(candidates: Records, epsilon: float) -> Any:
    def train(records: Records, seed: int) -> Sampler:
        there = (candidates[:, None] == records[None]).all(axis=2).any(axis=1)
        generator = np.random.default_rng(seed)
        told = generator.random(len(candidates)) < 1 / (1 + math.exp(-epsilon))
        shown = candidates[there == told]
        return Answers(np.concatenate([shown, np.full((1, WIDTH), 100.0, np.float32)]))

    return train


@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=pytest.mark.slow), 1.5])
def test_randomized_answers_pass_at_their_epsilon_and_fail_below_it(epsilon: float) -> None:
    played = replace(game(records=80, trials=160, samples=100), always=drawn(0, 2))
    one = {"nearest sample": ATTACKS["nearest sample"]}
    train = randomized(played.records, epsilon)
    stated = attacked(train, played, epsilon, 1e-9, confidence=0.999, attacks=one)
    assert epsilon - 0.3 < stated.chosen.shown <= epsilon
    assert stated.verdict is Verdict.PASSES
    less = attacked(train, played, 0.4 * epsilon, 1e-9, confidence=0.999, attacks=one)
    assert less.verdict is Verdict.FAILS


@pytest.mark.parametrize(
    "attack", ["nearest sample", "samples within a radius", "discriminator",
               "shadow models: moments", "shadow models: nearness"]
)  # fmt: skip
def test_each_kind_of_attack_alone_finds_a_generator_that_repeats_its_records(attack: str) -> None:
    report = attacked(repeating, game(trials=100), 1.0, 1e-6, attacks={attack: ATTACKS[attack]})
    assert report.verdict is Verdict.FAILS
    assert report.chosen.evidence.canarys_area.low > 0.7


@pytest.mark.slow
def test_a_generator_that_learned_nothing_passes_and_shows_nothing() -> None:
    report = attacked(lambda records, seed: Public(), game(), 1.0, 1e-6)
    assert report.verdict is Verdict.PASSES
    assert report.chosen.shown == 0.0
    assert report.power > 1.5
    for each in report.outcomes:
        assert each.evidence.area.low < 0.5 < each.evidence.area.high, each.attack


def test_attacks_that_could_not_have_found_anything_say_so() -> None:
    report = attacked(lambda records, seed: Public(), game(trials=8), 8.0, 1e-6)
    assert report.verdict is Verdict.SILENT
    assert str(report.verdict) == "says nothing"


def test_what_is_measured_does_not_choose_how() -> None:
    """Were coins of measured trials looked at, other coins would change what is expected."""
    played = play(repeating, game(), 0)
    known = played.coins[: game().known]
    for name, attack in ATTACKS.items():
        before = attack(game(), played)
        other = replace(played, coins=np.concatenate([known, ~played.coins[len(known) :]]))
        assert np.array_equal(before, attack(game(), other)), name


def test_shadow_models_are_scored_by_classifiers_that_did_not_learn_from_them() -> None:
    """In their own eyes classifiers of so few models would be nearly perfect."""
    played = play(lambda records, seed: Public(), game(trials=80, samples=10), 0)
    scores = moments(game(trials=80), played)[:40]
    area = roc_auc_score(played.coins[:40].ravel(), scores.ravel())
    assert 0.4 < area < 0.6


def test_figures_are_those_of_scikit_learn_and_of_a_loop() -> None:
    generator = np.random.default_rng(0)
    coins = generator.random((50, 20)) < 0.5
    scores = np.round(coins + generator.normal(0, 1, coins.shape), 1)
    found = figures.evidence((scores[:25], coins[:25]), (scores[25:], coins[25:]), 0)
    measured, won = scores[25:], coins[25:]
    assert found.area.value == pytest.approx(roc_auc_score(won.ravel(), measured.ravel()))
    assert found.area.low < found.area.value < found.area.high
    rates = [
        (measured[won] > at).mean()
        for at in np.unique(measured)
        if (measured[~won] > at).mean() <= figures.LOW
    ]
    assert found.rate.value == pytest.approx(max(rates))
    best = max(
        np.unique(scores[:25]),
        key=lambda at: (
            (scores[:25][coins[:25]] >= at).mean() - (scores[:25][~coins[:25]] >= at).mean()
        ),
    )
    reached = (measured[won] >= best).mean() - (measured[~won] >= best).mean()
    assert found.advantage.value == pytest.approx(reached, abs=0.1)


def test_an_exchanged_record_leaves_as_many_records() -> None:
    stand_ins = drawn(12, 9)
    exchanged = replace(game(), instead=stand_ins)
    coins = np.arange(12) % 3 == 0
    rows = learned_from(exchanged, coins)
    assert len(rows) == 20 + 12
    assert np.array_equal(rows[20:][coins], exchanged.records[coins])
    assert np.array_equal(rows[20:][~coins], stand_ins[~coins])
    assert len(learned_from(game(), coins)) == 20 + 4


@pytest.mark.slow
def test_games_and_verdicts_are_the_same_for_the_same_seed() -> None:
    few = {name: ATTACKS[name] for name in ("nearest sample", "shadow models: moments")}
    one, two = (
        attacked(repeating, game(trials=20), 1.0, 1e-6, seed=5, attacks=few) for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"trials": 4}, InvalidParametersError, "trials=4: must be a whole number, at least 8"),
        ({"reference": drawn(2, 0)}, InvalidInputError, "reference: 2 records; must be at least 8"),
        ({"always": np.zeros((3, 9), np.float32)}, InvalidInputError, "must be .*like records"),
        ({"records": drawn(0, 0)}, InvalidInputError, "records: 0 records; must be at least 1"),
        ({"records": drawn(2, 0) * np.nan}, InvalidInputError, "records: must be finite numbers"),
        ({"instead": drawn(3, 0)}, InvalidInputError, "instead: 3 records; must be at least 12"),
    ],
    ids=["few-trials", "few-references", "shape", "none", "nan", "too-few-stand-ins"],
)
def test_bad_games_are_refused(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        replace(game(), **changes)


def test_bad_generators_and_bad_claims_are_refused() -> None:
    class Other:
        def samples(self, count: int, seed: int) -> Any:
            return np.full((count, 2), np.nan)

    with pytest.raises(InvalidInputError, match=r"samples of shape \(80, 2\); must be finite"):
        attacked(lambda records, seed: Other(), game(), 1.0, 1e-6)
    with pytest.raises(InvalidParametersError, match="epsilon=-1"):
        attacked(repeating, game(), -1.0, 1e-6)
    with pytest.raises(InvalidParametersError, match="confidence=1"):
        attacked(repeating, game(), 1.0, 1e-6, confidence=1.0)


def test_a_repeated_record_is_near_a_sample() -> None:
    made = Repeating(drawn(5, 0), 0.01).samples(200, 0)
    assert np.abs(made[:, None] - drawn(5, 0)[None]).max(axis=2).min(axis=1).max() < 0.1
