"""Shared parts of the reproductions of Private Multi-Winner Voting: ensembles, noise by rule.

Dziedzic, Choquette-Choo, Dullerud and others, PoPETs 2023. Their data are not available here:
mixtures of real sounds with twenty labels replace Pascal VOC with its twenty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import open_encoder, rate_of
from earshot_protocol.progress import Progress
from earshot_protocol.spectrum import NARROW, WIDE
from earshot_studies.dziedzic.contests import ORDERS, Contest, answered, binary, clipped, powerset
from earshot_studies.dziedzic.scores import balanced_accuracy
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.mixtures.embedding import Mixtures, Part, Size, prepare
from earshot_studies.kit.mixtures.ensembles import Aim, Heads, ballots, thresholds, trained_teachers
from earshot_studies.kit.mixtures.mixing import MixingRecipe
from earshot_studies.kit.mixtures.sources import open_sources
from earshot_studies.kit.outcome import Row

BINARY, CLIPPED, POWERSET = "Binary", "τ", "Powerset"
RULES = (BINARY, CLIPPED, POWERSET)

VOC_DELTA, XRAY_DELTA = 1e-5, 1e-6
EPSILON = 20.0

_VERSION = 1
"""Cache format version; part of the key."""
_LOST = 0.02
"""Balanced accuracy that noise may cost."""
_SIGMAS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, *range(4, 16), *range(16, 31, 2))
_DRAWS = 2
_TAUS = np.round(np.arange(1.0, 4.5, 0.1), 1)
_TAU_LOST = 0.005


@dataclass(frozen=True)
class MixtureStudy:
    """The source of sound, and the amount of it that is mixed.

    Attributes:
        data: Folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        cache: Folder in which mixtures are kept.
        size: Numbers of mixtures.
        seeds: Number of seeds, each with its own recordings, mixtures and noise.
        encoder: Encoder file, or the name of a shipped one; None for the default one.
        progress: Callback that receives the progress.
        recipe: Recipe by which sounds are mixed.
    """

    data: Path
    cache: Path
    size: Size
    seeds: int
    progress: Progress
    encoder: str | None = None
    recipe: MixingRecipe = field(default_factory=MixingRecipe)

    @property
    def reported(self) -> range:
        """Seeds that are measured, from 1 on; settings were chosen with seed 0."""
        return range(1, self.seeds + 1)

    def mixtures(self, seed: int) -> Mixtures:
        """Return the mixtures of one seed."""
        encoder = open_encoder(self.encoder)
        rate = rate_of(encoder)

        def told(what: str, done: int, total: int, line: str | None = None) -> None:
            self.progress(f"{what}, seed {seed}", done, total, line)

        return prepare(
            lambda: open_sources(self.data, rate, self.cache / "sound"),
            encoder,
            WIDE if rate == WIDE.rate else NARROW,
            self.size,
            self.recipe,
            seed,
            self.cache,
            told,
        )

    def kept(
        self, name: str, seed: int, make: Callable[[MixtureStudy, int], list[Row]]
    ) -> list[Row]:
        """Return the kept rows of a seed, or make and keep them.

        Args:
            name: Name of the measurement.
            seed: Seed of its mixtures.
            make: Function that measures the rows.
        """
        settings = [_VERSION, name, asdict(self.size), asdict(self.recipe), self.encoder, seed]
        return Kept(self.cache).rows(name, settings, lambda: make(self, seed))

    def served(self) -> str:
        """Return a note on how many teachers share a recording, and its consequence."""
        served = self.mixtures(self.reported[0]).served
        return (
            f"A recording is shared by up to {served.max()} teachers (by label: "
            f"{', '.join(map(str, served))}), as a class of environments has few. The unit of "
            "protection is all data of one teacher; for a recording shared by t teachers the Rényi "
            "divergence is t² times as large."
        )

    @property
    def _heard(self) -> str:
        name = open_encoder(self.encoder).name
        if self.encoder is None or self.encoder == name:
            return f"{name}, which was trained on all of these recordings, without labels"
        return f"{name}, public as far as it was trained on other sound"

    @property
    def described(self) -> str:
        """Description of the mixtures, for notes."""
        size, recipe = self.size, self.recipe
        return (
            f"{size.teachers} teachers of {size.mixtures} mixtures; {size.queries:,} queries; "
            f"{size.validation:,} mixtures for thresholds and noise, {size.test:,} for tests; "
            f"{self.seeds} {'seed' if self.seeds == 1 else 'seeds'}. A mixture is "
            "one second of one to three real sounds "
            f"({recipe.mean:.2f} labels on average, about as in Pascal VOC), up to "
            f"{recipe.spread:g} dB louder or softer, with a background that is "
            f"{recipe.most_noise:g} to {recipe.least_noise:g} dB softer. Ten labels are "
            "environments (ESC-10), ten are spoken digits (Free Spoken Digits), alternating; "
            '"the first k labels" are the first of this order. Recordings of teachers, validation, '
            "queries and tests are disjoint: ESC folds 1 and 2 (every eighth recording held back "
            "for validation), 3 and 4; digits by takes. "
            f"Teachers are logistic regressions on an embedding ({self._heard}) and on the mean of "
            "each log-mel band. Their regularization, and DP-SGD's steps, rate and norm, were "
            "chosen on queries and tests of one further seed, which is not measured here."
        )


@dataclass(frozen=True)
class Votes:
    """The votes of an ensemble on some mixtures.

    Attributes:
        part: Mixtures that it votes on.
        probabilities: Probabilities of labels, float64 (teachers, rows, labels).
        ballots: Ballots of 0 or 1, int8 (teachers, rows, labels).
    """

    part: Part
    probabilities: NDArray[np.float64]
    ballots: NDArray[np.int8]


@dataclass(frozen=True)
class VotingTeachers:
    """Teachers, with their votes.

    Attributes:
        name: Name in the table.
        aim: Aim for which the thresholds are chosen.
        heads: Heads of the teachers.
        thresholds: Thresholds of all teachers, by label.
        validation, queries: Votes on validation mixtures and on queries.
        delta: Parameter δ of the tables with which the ensemble is compared.
    """

    name: str
    aim: Aim
    heads: Heads
    thresholds: NDArray[np.float64]
    validation: Votes
    queries: Votes
    delta: float

    @property
    def teachers(self) -> int:
        """Number of teachers."""
        return len(self.queries.ballots)

    @cached_property
    def tau(self) -> float:
        """Least τ in L2; see `least_tau`."""
        return self.least_tau(2)

    def least_tau(self, norm: int) -> float:
        """Return the least τ that costs at most 0.005 of balanced accuracy, without noise."""
        own = self.validation
        free = balanced_accuracy(own.part.truth, binary(own.ballots).winners(0, _nobody()))
        for tau in _TAUS:
            outcome = clipped(own.ballots, tau, norm).winners(0, _nobody())
            if balanced_accuracy(own.part.truth, outcome) >= free - _TAU_LOST:
                return float(tau)
        return float(_TAUS[-1])

    def contest(self, rule: str, votes: Votes, labels: int) -> Contest:
        """Return the votes on the first labels under one of `RULES`."""
        cast = votes.ballots[:, :, :labels]
        if rule == BINARY:
            return binary(cast)
        if rule == CLIPPED:
            return clipped(cast, self.tau)
        return powerset(cast)

    def most_noise(self, labels: int, seed: int) -> Mapping[str, float]:
        """Return each rule's largest σ with which all are about equally accurate, on validation.

        Their balanced accuracy must be at least that of the worst rule without noise, less 0.02.
        The paper also chooses noise for equal accuracy, but on the queries themselves.
        """
        truth = self.validation.part.truth[:, :labels]
        contests = {rule: self.contest(rule, self.validation, labels) for rule in RULES}
        free = {
            rule: balanced_accuracy(truth, contest.winners(0, _nobody()))
            for rule, contest in contests.items()
        }
        wanted = min(free.values()) - _LOST
        found = {}
        for rule, contest in contests.items():
            generator = np.random.default_rng([seed, labels])
            found[rule] = float(_SIGMAS[0])
            for sigma in _SIGMAS:
                draws = [contest.winners(sigma, generator) for _ in range(_DRAWS)]
                if np.mean([balanced_accuracy(truth, each) for each in draws]) < wanted:
                    break
                found[rule] = float(sigma)
        return found


def best_noise(
    divergences: Callable[[float], NDArray[np.float64]], most: float, epsilon: float, delta: float
) -> float:
    """Return the σ up to `most` with which most queries are answered.

    Less noise is cheaper where a cost depends on the votes: with much noise no outcome is certain.

    Args:
        divergences: Function from σ to the cost of each validation mixture, (rows, orders).
        most: Largest σ that is accurate enough.
        epsilon: Budget ε.
        delta: Parameter δ of the budget.
    """
    sigmas = [sigma for sigma in _SIGMAS if sigma <= most]
    # Validation mixtures may all be answered: then their total decides, at the best order.
    slack = -math.log(delta) / (ORDERS - 1)
    totals = [divergences(sigma) for sigma in sigmas]
    fits = [answered(each, epsilon, delta) for each in totals]
    spent = [float((each.sum(axis=0) + slack).min()) for each in totals]
    return float(max(zip(fits, [-each for each in spent], sigmas, strict=True))[2])


def ensembles(
    mixtures: Mixtures, names: Mapping[str, tuple[Aim, int, float]]
) -> list[VotingTeachers]:
    """Train teachers once, and choose thresholds for several aims.

    Args:
        mixtures: Mixtures of one seed.
        names: Ensembles by name: aim, number of teachers (the first ones), and δ.
    """
    heads = trained_teachers(mixtures.teachers)
    likely = {
        "validation": heads.probabilities(mixtures.validation.features),
        "queries": heads.probabilities(mixtures.queries.features),
    }
    found = []
    for name, (aim, teachers, delta) in names.items():
        own = {part: each[:teachers] for part, each in likely.items()}
        levels = thresholds(own["validation"], mixtures.validation.truth, aim)
        found.append(
            VotingTeachers(
                name,
                aim,
                Heads(heads.weights[:teachers], heads.biases[:teachers]),
                levels,
                Votes(mixtures.validation, own["validation"], ballots(own["validation"], levels)),
                Votes(mixtures.queries, own["queries"], ballots(own["queries"], levels)),
                delta,
            )
        )
    return found


def _nobody() -> np.random.Generator:
    """Return a random generator for use without noise."""
    return np.random.default_rng(0)
