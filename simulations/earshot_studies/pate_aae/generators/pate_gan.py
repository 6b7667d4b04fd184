"""PATE-GAN (Jordon et al., ICLR 2019): a student critic learns from teachers' votes on samples.

Each teacher is a critic that learns to tell the clips of its own part from samples. Their votes on
samples are counted, and the noisy winner is published: real or not. A student critic learns from
samples and winners, and the generator from the student. So all publications depend on the clips
through the winners alone, and one clip changes the votes of one teacher. The number of winners,
`queries`, is fixed in advance; the accountant computes their cost for one-hot ballots: one clip
changes two counts by one each, on every query.

In Jordon et al. a teacher votes "real" above a probability of one half. Well-trained teachers then
vote so for no sample, and the student learns nothing. With `Ensemble.halves` a teacher votes "real"
for the half of a query's samples that it rates highest: the student learns which samples are
better, at the same cost, because votes may depend on a teacher's clips and on public samples in any
way.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from earshot_models.teachers.partitions import partitions
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators import adversaries
from earshot_studies.pate_aae.generators.beside import Beside
from earshot_studies.pate_aae.generators.clips import Clips, checked_clips
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.networks import SampleCritic, Shape, initialized
from earshot_studies.pate_aae.generators.origin import Origin
from earshot_studies.pate_aae.generators.private_training import about_cost
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, plain
from earshot_studies.pate_aae.generators.start import Start, about_start
from earshot_studies.pate_aae.generators.steps import Loop

Aggregator = LNMax | GNMax


@dataclass(frozen=True)
class Ensemble:
    """The teachers of a PATE-GAN.

    Attributes:
        teachers: Number of teachers (M), each with its own part of the clips.
        width: Units of a teacher.
        rate: Learning rate of a teacher's Adam.
        steps: Steps that teachers take before the student's, in each step of the generator.
        batch: Clips, and as many samples, in a teacher's step.
        halves: Let teachers vote "real" for the better half of a query's samples, instead of for
            those above a probability of one half.

    Raises:
        InvalidParametersError: A number is out of range.
    """

    teachers: int = 200
    width: int = 32
    rate: float = 1e-3
    steps: int = 1
    batch: int = 8
    halves: bool = True

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers, 2)
        checks.whole("width", self.width, 4, 2**14)
        checks.positive("rate", self.rate, 1)
        checks.whole("steps", self.steps)
        checks.whole("batch", self.batch)


class Team(NamedTuple):
    """All teachers, along the first axis of all weights, and their optimizer."""

    critics: SampleCritic
    memory: Any


class PateGanState(NamedTuple):
    """State between two steps: generator and student, which depend on votes alone, and teachers."""

    public: adversaries.GameState
    team: Team


def queries(settings: GeneratorSettings) -> int:
    """Return the number of samples that teachers vote on in a whole training (K)."""
    return settings.steps * settings.critic_steps * settings.batch


def train_pate_gan(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    ensemble: Ensemble,
    aggregator: Aggregator,
    origin: Origin,
    *,
    start: Start[adversaries.Networks] | None = None,
    sources: NDArray[np.integer] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Generator:
    """Train a generator on sensitive clips, by votes of teachers.

    Args:
        clips: Clips, (clips, frames, bands) in [−1, 1].
        settings: Settings of generator and student; `steps` counts those of the generator, each
            after `critic_steps` of the student on `batch` samples each.
        ensemble: Settings of the teachers.
        aggregator: Mechanism that chooses the winner of a vote.
        origin: Origin with the ε, δ and unit that `queries(settings)` winners cost, as computed by
            the caller.
        sources: Source of each clip, (clips,); one source's clips go to one teacher. None if each
            clip is a source.
        start: Networks trained on public clips (`gan.start_gan`), for generator and student, and
            the share of votes in the student's gradients; None for random networks and votes alone.
        seed: Seed for simulations only; None for randomness of the operating system.
        progress: Callback for the number of steps done.
        checkpoint: File from which an interrupted training continues; as secret as the clips, and
            removed afterwards. Repeated votes get the same noise again.

    Raises:
        InvalidInputError: Clips or sources are invalid, or a checkpoint is damaged or of another
            training.
        DivergedError: Weights of generator or student became infinite, which votes alone can cause.
        NotPublicStartError: The start is not of public sound alone.
        InvalidParametersError: There are more teachers than sources, the origin is not private, or
            the start has other networks or clips of another shape.
    """
    cost = about_cost(origin)
    given = checked_clips(clips)
    stems = np.arange(len(given)) if sources is None else np.asarray(sources)
    if stems.shape != given.shape[:1]:
        raise InvalidInputError(f"sources: must be a whole number for each of {len(given)} clips")
    about = cost | {
        "aggregator": repr(aggregator), "sources": stems.tolist() if sources is not None else None,
        **plain(settings), **{f"ensemble {name}": each for name, each in asdict(ensemble).items()},
        **about_start(start),
    }  # fmt: skip
    loop = Loop("pate-gan", given, about, seed, checkpoint)
    randomness, shape = loop.randomness, loop.shape
    # Sizes of parts are public, as the number of sources is; the assignment is random.
    parts = partitions(stems, ensemble.teachers, randomness.generator("parts"))
    teachers = CriticTeachers(given, parts, settings, ensemble, randomness)
    constant = settings.of_a_step()

    def draws(generator: np.random.Generator, count: int, number: int) -> adversaries.CriticDraws:
        left = 1 - number / settings.steps
        return adversaries.draws(generator, count, shape, settings, left)

    beside = Beside(start, adversaries.critic_loss, draws, settings.batch, constant, randomness)

    def step(state: PateGanState, number: int) -> PateGanState:
        public, team = state
        left = 1 - number / settings.steps
        for lesson in range(ensemble.steps):
            team = teachers.taught(team, public, f"{number} {lesson}", left)
        generator = randomness.generator("public", number)
        for lesson in range(settings.critic_steps):
            own = draws(generator, settings.batch, number)
            shown = _shown(public, own)
            votes = counts(team.critics, shown, ensemble.halves)
            noise = randomness.source("votes", number, lesson)
            winners = aggregator.winners(votes, noise).astype(np.float32)
            heard = _heard(public.critic, shown, winners)
            mixed = beside.mixed(number, heard, public.critic, public.decoder, lesson)
            public = adversaries.critic_moved(public, mixed, constant)
        own = draws(generator, settings.batch, number)
        return PateGanState(adversaries.decoder_moved(public, own, constant), team)

    public = adversaries.started(shape, settings, randomness.generator("weights"), start)
    first = PateGanState(public, teachers.started())
    # A teacher that diverges votes badly, but does not end the training.
    state = loop.run(first, step, settings.steps, progress, seen=lambda state: state.public)
    return Generator(state.public.average, shape, settings, origin)


class CriticTeachers:
    """Training of critics, each on its own part of the clips."""

    def __init__(
        self,
        clips: Clips,
        parts: list[NDArray[np.int64]],
        settings: GeneratorSettings,
        ensemble: Ensemble,
        randomness: Randomness,
    ) -> None:
        self._clips = clips
        self._shape: Shape = (clips.shape[1], clips.shape[2])
        self._sizes = np.array([len(part) for part in parts])
        # Parts are repeated to one length; places beyond a part's size are never drawn.
        self._places = np.stack([np.resize(part, self._sizes.max()) for part in parts])
        self._settings, self._ensemble, self._randomness = settings, ensemble, randomness
        self._constant = settings.of_a_step()

    def started(self) -> Team:
        """Return untrained teachers."""
        shape, settings = self._shape, self._teacher_settings()
        critics = initialized(
            functools.partial(SampleCritic, shape, settings),
            self._randomness.generator("teachers"),
            self._ensemble.teachers,
        )
        return Team(critics, _memory(critics, self._ensemble))

    def taught(self, team: Team, public: adversaries.GameState, name: str, left: float) -> Team:
        """Return the teachers after a step, each on clips of its part and on samples.

        Args:
            team: Teachers before the step.
            public: State that makes the samples.
            name: Name of the step.
            left: Remaining share of the training, from 1 down to 0.
        """
        generator = self._randomness.generator("lesson", name)
        size = (self._ensemble.teachers, self._ensemble.batch)
        chosen = (generator.random(size) * self._sizes[:, None]).astype(np.int64)
        clips = self._clips[np.take_along_axis(self._places, chosen, axis=1)]
        count = self._settings.batch
        own = adversaries.draws(generator, count, self._shape, self._settings, left)
        clips += own.on_clip[generator.integers(0, count, size)]
        fakes = np.asarray(_shown(public, own))[generator.integers(0, count, size)]
        after: Team = _taught(team, clips, fakes, self._constant, self._ensemble)
        return after

    def _teacher_settings(self) -> GeneratorSettings:
        return replace(self._settings, critic_width=self._ensemble.width)


def counts(critics: SampleCritic, shown: Any, halves: bool) -> NDArray[np.int64]:
    """Count the teachers' votes of each sample for "not real" and "real", int64 (samples, 2).

    Args:
        critics: Critics of all teachers.
        shown: Samples, (samples, frames, bands).
        halves: Voting as in `Ensemble.halves`; if false, teachers vote by the signs of their
            logits.
    """
    words = np.nan_to_num(np.asarray(_words(critics, shown), np.float64))
    bars = np.median(words, axis=1, keepdims=True) if halves else 0.0
    real = (words > bars).sum(axis=0)
    return np.stack([len(words) - real, real], axis=1).astype(np.int64)


@functools.partial(jax.jit, static_argnames=("ensemble",))
def _memory(critics: SampleCritic, ensemble: Ensemble) -> Any:
    return optax.adam(ensemble.rate, b1=0.5).init(critics)


@jax.jit
def _words(critics: SampleCritic, shown: Any) -> Any:
    """Return the teachers' logits, (teachers, samples)."""
    return jax.vmap(lambda critic: jax.vmap(critic)(shown))(critics)


@jax.jit
def _shown(public: adversaries.GameState, own: adversaries.CriticDraws) -> Any:
    return jax.vmap(public.decoder)(own.latent) + own.on_sample


@functools.partial(jax.jit, static_argnames=("settings", "ensemble"))
def _taught(
    team: Team, clips: Any, fakes: Any, settings: GeneratorSettings, ensemble: Ensemble
) -> Team:
    def loss(critic: SampleCritic, real: Any, fake: Any) -> jax.Array:
        heard = jax.vmap(lambda clip: adversaries.real_loss(critic, clip, settings))(real)
        made = jax.nn.softplus(jax.vmap(critic)(fake))
        return jnp.mean(heard) + jnp.mean(made)

    gradients = jax.vmap(jax.grad(loss))(team.critics, clips, fakes)
    updates, memory = optax.adam(ensemble.rate, b1=0.5).update(gradients, team.memory)
    return Team(optax.apply_updates(team.critics, updates), memory)


@jax.jit
def _heard(student: SampleCritic, shown: Any, winners: Any) -> Any:
    """Return gradients of the student on samples and the winner of each, 1 for real."""

    def loss(critic: SampleCritic) -> jax.Array:
        words = jax.vmap(critic)(shown)
        return jnp.mean(jax.nn.softplus(words) - winners * words)

    return jax.grad(loss)(student)
