"""PATE-GAN: what a teacher's clips can move, what the generator hears of them, how it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support import compiling  # noqa: F401  # programs are compiled in half the time
from support.clips import moving_bands
from support.same_bits import same_bits

from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.generators import adversaries, pate_gan
from earshot_studies.pate_aae.generators.checkpoint import OtherTrainingError
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.networks import SampleCritic
from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE, PUBLIC, private
from earshot_studies.pate_aae.generators.pate_gan import (
    CriticTeachers,
    Ensemble,
    counts,
    queries,
    train_pate_gan,
)
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network
from earshot_studies.pate_aae.generators.steps import DivergedError

FAKE, REAL = 0, 1
"""Places among the two classes of a ballot."""
TINY = GeneratorSettings(
    Network.DENSE, width=8, latent=2, batch=6, critic_width=8, critic_steps=2, steps=4
)
TEAM = Ensemble(teachers=3, width=4, batch=2)
ORIGIN = private(3.0, 1e-5, "clip")


def train(clips: Any = None, **changes: Any) -> Generator:
    arguments = {
        "settings": TINY, "ensemble": TEAM, "aggregator": GNMax(1.0), "origin": ORIGIN, "seed": 1
    } | changes  # fmt: skip
    return train_pate_gan(moving_bands(10) if clips is None else clips, **arguments)


def recorded(monkeypatch: pytest.MonkeyPatch, aggregator: type[Any] = GNMax) -> list[Any]:
    """All votes of trainings from here on, and their winners."""
    seen: list[Any] = []
    real = aggregator.winners

    def winners(self: Any, votes: Any, random: Any) -> Any:
        seen.append((np.array(votes), real(self, votes, random)))
        return seen[-1][1]

    monkeypatch.setattr(aggregator, "winners", winners)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("aggregator", [GNMax(1.0), LNMax(0.5)])
def test_teachers_vote_as_often_as_was_said_before(
    aggregator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = recorded(monkeypatch, type(aggregator))
    generator = train(aggregator=aggregator)
    assert generator.origin is ORIGIN
    assert generator.samples(2, 0).shape == (2, 4, 6)
    assert queries(TINY) == 4 * 2 * 6 == sum(len(votes) for votes, _ in seen)
    # One ballot a teacher on each query: one vote, for one of two.
    assert all((votes.sum(axis=1) == 3).all() for votes, _ in seen)


def taught(clips: Any, steps: int = 3) -> Any:
    """Teachers of ten clips, after some steps beside a generator that stands still."""
    randomness = Randomness(b"k" * 32)
    parts = [np.array([0, 1, 2, 3]), np.array([4, 5, 6]), np.array([7, 8, 9])]
    teachers = CriticTeachers(clips, parts, TINY, TEAM, randomness)
    public = adversaries.started((4, 6), TINY, randomness.generator("weights"))
    team = teachers.started()
    for step in range(steps):
        team = teachers.taught(team, public, str(step), 1.0)
    return team.critics


@pytest.mark.parametrize("halves", [True, False])
def test_one_clip_moves_one_teacher_and_at_most_one_vote_of_a_query(halves: bool) -> None:
    clips = moving_bands(10)
    other = np.array(clips)
    other[5] = 1.0
    one, two = taught(clips), taught(other)
    for before, after in zip(
        *(map(np.asarray, jax.tree.leaves(each)) for each in (one, two)), strict=True
    ):
        np.testing.assert_array_equal(before[[0, 2]], after[[0, 2]])
        assert before.ndim == 1 or not np.array_equal(before[1], after[1])
    shown = np.random.default_rng(0).uniform(-1, 1, (50, 4, 6)).astype(np.float32)
    moved = counts(one, shown, halves) - counts(two, shown, halves)
    # The ballot is one-hot: what one class loses the other gains, and it is one vote.
    assert (np.abs(moved).sum(axis=1) <= 2).all()
    assert (moved.sum(axis=1) == 0).all()


def test_a_teacher_learns_from_its_own_part_alone() -> None:
    # Teachers of dark and of bright clips find other samples real.
    clips = np.full((10, 4, 6), -0.9, np.float32)
    clips[4:7] = 0.9
    critics = taught(clips, 150)
    shown = np.stack([np.full((4, 6), -0.9, np.float32), np.full((4, 6), 0.9, np.float32)])
    words = np.asarray(pate_gan._words(critics, shown))
    assert words[0, 0] > words[0, 1]
    assert words[1, 0] < words[1, 1]
    assert words[2, 0] > words[2, 1]


def test_votes_are_counted_as_in_a_loop() -> None:
    critics = taught(moving_bands(10))
    shown = np.random.default_rng(1).uniform(-1, 1, (7, 4, 6)).astype(np.float32)
    each: list[SampleCritic] = [
        jax.tree.map(lambda leaf, place=place: leaf[place], critics) for place in range(3)
    ]
    words = np.array([[float(critic(clip)) for clip in shown] for critic in each])
    signs, halves = counts(critics, shown, False), counts(critics, shown, True)
    np.testing.assert_array_equal(signs[:, REAL], (words > 0).sum(axis=0))
    np.testing.assert_array_equal(signs.sum(axis=1), 3)
    order = words.argsort(axis=1)[:, -3:]  # of seven, three lie above the median
    np.testing.assert_array_equal(halves[:, REAL], np.bincount(order.ravel(), minlength=7))
    np.testing.assert_array_equal(halves[:, FAKE], 3 - halves[:, REAL])


def test_the_generator_hears_of_clips_through_winners_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Teachers that learn fast, of clips and of what is their opposite: winners are others.
    quick: Any = {"ensemble": replace(TEAM, rate=0.1, steps=3), "aggregator": GNMax(1e-9)}
    clips = -moving_bands(12, seed=7)
    seen = recorded(monkeypatch)
    one = train(**quick)
    said = [winners for _, winners in seen]
    other = train(clips, **quick)
    assert not all(same_bits(*pair) for pair in zip(said, [w for _, w in seen[8:]], strict=True))
    assert not same_bits(one.decoder, other.decoder)
    # The same winners from other clips, another number of them and other votes: the same bits.
    monkeypatch.setattr(GNMax, "winners", lambda *_: said.pop(0))
    assert same_bits(one.decoder, train(clips, **quick).decoder)
    assert not said


@pytest.mark.slow
@pytest.mark.parametrize("halves", [True, False])
def test_a_teacher_that_went_astray_ends_nothing(
    halves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = CriticTeachers.taught, recorded(monkeypatch)

    def astray(self: Any, *given: Any) -> Any:
        team = real(self, *given)
        wild = jax.tree.map(lambda leaf: leaf.at[1].set(np.nan), team.critics)
        return team._replace(critics=wild)

    monkeypatch.setattr(CriticTeachers, "taught", astray)
    generator = train(ensemble=replace(TEAM, halves=halves))
    assert np.isfinite(generator.samples(2, 0)).all()
    assert all((votes.sum(axis=1) == 3).all() for votes, _ in seen)
    # What the vote makes of generator and student may end it, by name.
    monkeypatch.setattr(pate_gan, "_heard", lambda *_: jax.tree.map(lambda x: x * np.nan, _[0]))
    with pytest.raises(DivergedError, match="not finite numbers"):
        train()


def test_winners_follow_votes_where_there_is_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = recorded(monkeypatch)
    train(aggregator=GNMax(1e-9))
    for votes, winners in seen:
        np.testing.assert_array_equal(winners, votes[:, REAL] > votes[:, FAKE])


def test_what_one_source_gave_is_with_one_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    real = CriticTeachers.__init__

    def watched(self: Any, clips: Any, parts: Any, *rest: Any) -> None:
        kept.append(parts)
        real(self, clips, parts, *rest)

    monkeypatch.setattr(CriticTeachers, "__init__", watched)
    sources = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    train(sources=sources, settings=replace(TINY, steps=1))
    owners = [set(sources[part].tolist()) for part in kept[0]]
    assert sorted(place for part in kept[0] for place in part) == list(range(10))
    assert sum(len(each) for each in owners) == 5


def test_a_killed_training_counts_its_votes_again_with_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot_studies.pate_aae.generators.steps.EVERY", 2)
    seen = recorded(monkeypatch)
    whole, path = train(), tmp_path / "checkpoint"
    real = adversaries.critic_moved
    calls: list[None] = []

    def killed(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 7:  # in the fourth step, after its first vote
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(adversaries, "critic_moved", killed)
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=path)
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(adversaries, "critic_moved", real)
    for change in (
        {"ensemble": replace(TEAM, rate=0.1)},
        {"aggregator": GNMax(2.0)},
        {"sources": np.arange(10)},
        {"clips": moving_bands(10, seed=3)},
    ):
        with pytest.raises(OtherTrainingError, match="differ"):
            train(checkpoint=path, **change)
    before = seen[8:15]
    del seen[:]
    assert same_bits(train(checkpoint=path).decoder, whole.decoder)
    # The third step and the vote of the fourth were there before: the same votes, the same winners.
    assert len(seen) == 4
    for one, other in zip(before[4:], seen, strict=False):
        assert same_bits(one, other)
    assert not list(tmp_path.iterdir())


def test_without_a_seed_noise_is_the_operating_systems() -> None:
    assert not same_bits(train(seed=None).decoder, train(seed=None).decoder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ensemble": replace(TEAM, teachers=11)}, "each teacher needs its own"),
        ({"sources": np.zeros(10, int)}, "each teacher needs its own"),
        ({"origin": PUBLIC}, "epsilon"),
        ({"origin": NOT_PRIVATE}, "epsilon"),
    ],
)
def test_what_cannot_be_trained_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        train(**change)


def test_sources_and_clips_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="sources"):
        train(sources=np.arange(9))
    with pytest.raises(InvalidInputError, match="finite"):
        train(np.full((10, 4, 6), np.inf))


@pytest.mark.parametrize(
    "change", [{"teachers": 1}, {"width": 0}, {"rate": 0}, {"steps": 0}, {"batch": 0}], ids=str
)
def test_an_ensemble_out_of_range_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(change))):
        replace(TEAM, **change)
