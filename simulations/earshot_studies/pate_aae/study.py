"""Private students of spoken digits: measurements of every generator, budget and seed.

A cell holds the results of one trained generator under one budget: the distance of its samples from
real clips, and the accuracy of students trained on answers about them. Cells are kept, so that an
interrupted study can be resumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models.teachers.students import supervised
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.files import replacement
from earshot_protocol.progress import Progress
from earshot_studies.kit.kept import Kept, digest, rows_at
from earshot_studies.pate_aae.answers import AnswerNoise, ClipTeachers, answered, ensemble, scale
from earshot_studies.pate_aae.digits import STUDENT, TEACHER, MovedRidge
from earshot_studies.pate_aae.frechet import fidelity
from earshot_studies.pate_aae.public_embedding import PublicEmbedding
from earshot_studies.pate_aae.split import LabelledClips, Split
from earshot_studies.pate_aae.systems import (
    Makers,
    PublicationBudget,
    SampleSource,
    System,
    TrainingOrder,
    shares,
)

Cell = dict[str, str | float | int]
"""Measurements by name."""

EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Values of ε in the paper's Table 1."""

_VERSION = 1
"""Cache format version; part of the key."""
_SHOWN = 6
"""Number of samples that are kept for pictures."""
_TEACHERS, _GENERATOR, _SAMPLES, _QUERIES, _NOISE = range(5)
"""Uses of a seed's random numbers."""


@dataclass(frozen=True)
class StudySize:
    """The amount of training and of queries.

    Attributes:
        teachers: Number of teachers on disjoint parts of the private clips (I).
        queries: Number of generated clips that are answered (K); I of them, as in equation 8.
        samples: Number of generated clips whose distance is measured.
        delta: Budget δ, the same for every ε.
        epsilons: Budgets ε, all different.
    """

    teachers: int = 200
    queries: int = 200
    samples: int = 1800
    delta: float = 1e-5
    epsilons: tuple[float, ...] = EPSILONS

    def __post_init__(self) -> None:
        for name in ("teachers", "queries", "samples"):
            checks.whole(name, getattr(self, name))
        checks.probability("delta", self.delta)
        if not self.epsilons or len(set(self.epsilons)) != len(self.epsilons):
            raise InvalidParametersError("epsilons: must be at least one, all different")
        for epsilon in self.epsilons:
            checks.epsilon("epsilon", epsilon)

    def check(self, clips: int) -> None:
        """Check the sizes against the number of private clips.

        Raises:
            InvalidParametersError: There are fewer clips than teachers, or δ is so large that a
                clip may be published.
        """
        if self.teachers > clips:
            raise InvalidParametersError(
                f"teachers={self.teachers}: there are {clips} private clips, and each teacher "
                "needs one of its own"
            )
        if self.delta * clips >= 1:
            raise InvalidParametersError(
                f"delta={self.delta}: must be below 1/{clips}, one over the private clips, or a "
                "clip may be published"
            )


@dataclass(frozen=True)
class ClipStudy:
    """The source of clips, and the measurements on them.

    Attributes:
        split: Clips by speaker and use.
        embedding: Embedding in which distances are measured.
        size: Amount of training and of queries.
        makers: Makers of the generators.
        recipes: Recipe of each generator, as text; part of the key of its cells.
        folder: Folder that keeps cells.
        progress: Callback for progress.

    Raises:
        InvalidParametersError: There are fewer clips than teachers, or δ is so large that a clip
            may be published.
    """

    split: Split
    embedding: PublicEmbedding
    size: StudySize
    makers: Makers
    recipes: Mapping[System, str]
    folder: Path
    progress: Progress

    def __post_init__(self) -> None:
        self.size.check(len(self.split.private))

    def references(self, seed: int) -> Cell:
        """Return floors and ceilings of accuracy, reached without generated clips."""
        return self._kept(f"references-{seed}", lambda: [self._references(seed)])[0]

    def cells(self, system: System, seed: int) -> list[Cell]:
        """Return the measurements of a system under every budget.

        A generator that spends no budget is trained once for all of them.
        """
        if not system.spends:
            name = self._name(system, None, seed)
            return self._kept(name, lambda: self._measured(system, seed, self.size.epsilons, name))
        found = []
        for epsilon in self.size.epsilons:
            name = self._name(system, epsilon, seed)

            def make(epsilon: float = epsilon, name: str = name) -> list[Cell]:
                return self._measured(system, seed, (epsilon,), name)

            found += self._kept(name, make)
        return found

    def pictures(self, system: System, epsilon: float, seed: int) -> NDArray[np.float32]:
        """Return some samples of a measured system, (samples, frames, bands)."""
        name = self._name(system, epsilon if system.spends else None, seed)
        with self._path(name).with_suffix(".npy").open("rb") as file:
            return np.asarray(np.load(file, allow_pickle=False), dtype=np.float32)

    def _references(self, seed: int) -> Cell:
        split, own = self.split, self._ensemble(seed)
        said = own.answers(split.test.pictures)
        votes = own.votes(split.test.pictures)
        size = scale(AnswerNoise.NONE, 1.0, self.size.delta, len(votes))
        winners = answered(AnswerNoise.NONE, votes, size, _generator(seed, _NOISE))
        return {
            "seed": seed,
            "central": self._right(MovedRidge(TEACHER), split.private, split.test),
            "public": self._right(MovedRidge(TEACHER), split.public, split.test),
            "teacher": float((said == split.test.labels).mean()),
            "vote": float((winners == split.test.labels).mean()),
            "validation_public": self._right(MovedRidge(TEACHER), split.public, split.validation),
        }

    def _measured(
        self, system: System, seed: int, epsilons: Sequence[float], name: str
    ) -> list[Cell]:
        budgets = [PublicationBudget(epsilon, self.size.delta) for epsilon in epsilons]
        generator = self._trained(system, seed, shares(system, budgets[0])[0], name)
        samples = generator.samples(self.size.samples, _number(seed, _SAMPLES))
        real = self.embedding.embed(self.split.private.pictures)
        distance = fidelity(real, self.embedding.embed(samples))
        with replacement(self._path(name).with_suffix(".npy")) as new:
            np.save(new, samples[:_SHOWN].astype(np.float16))
        queries = generator.samples(self.size.queries, _number(seed, _QUERIES))
        votes = self._ensemble(seed).votes(queries)
        return [
            {
                "seed": seed,
                "system": str(system),
                "epsilon": budget.epsilon,
                "fid": distance.generated.mean,
                "fid_real": distance.real.mean,
                **self._taught(shares(system, budget)[1], budget, queries, votes, seed),
            }
            for budget in budgets
        ]

    def _taught(
        self,
        labels: PublicationBudget,
        whole: PublicationBudget,
        queries: NDArray[np.float32],
        votes: NDArray[np.float64],
        seed: int,
    ) -> Cell:
        """Train and score students on answers about the same clips, with every noise.

        The printed scale is for the cost of the labels alone, so it gets the whole ε.
        """
        agreed = votes.argmax(axis=1)
        found: Cell = {"labels_epsilon": labels.epsilon, "agreement": float(_share(votes).mean())}
        for place, noise in enumerate(AnswerNoise):
            budget = whole if noise is AnswerNoise.PRINTED else labels
            size = scale(noise, budget.epsilon, budget.delta, len(votes))
            # The same random numbers for every system and budget: comparisons are paired.
            winners = answered(noise, votes, size, _generator(seed, _NOISE, place))
            taught = LabelledClips(queries, winners)
            found |= {
                f"{noise.name.lower()}_scale": size,
                f"{noise.name.lower()}_kept": float((winners == agreed).mean()),
                f"{noise.name.lower()}_accuracy": self._right(
                    MovedRidge(STUDENT), taught, self.split.test
                ),
            }
        return found

    def _right(self, learner: MovedRidge, taught: LabelledClips, test: LabelledClips) -> float:
        student = supervised(learner, taught.pictures, taught.labels, self.split.classes)
        return float((student.predict(test.pictures) == test.labels).mean())

    def _trained(
        self, system: System, seed: int, budget: PublicationBudget | None, name: str
    ) -> SampleSource:
        def told(what: str, done: int, total: int, line: str | None = None) -> None:
            spent = "" if budget is None else f", ε {2 * budget.epsilon:g}"
            self.progress(f"{system}{spent}, seed {seed}", done, total, line)

        order = TrainingOrder(
            self.split,
            budget,
            _number(seed, _GENERATOR),
            self._path(name).with_suffix(".checkpoint"),
            told,
        )
        return self.makers[system](order)

    def _ensemble(self, seed: int) -> ClipTeachers:
        def told(what: str, done: int, total: int, line: str | None = None) -> None:
            self.progress(f"{what}, seed {seed}", done, total, line)

        if seed not in self._ensembles:
            self._ensembles.clear()
            self._ensembles[seed] = ensemble(
                self.split.private,
                self.split.classes,
                self.size.teachers,
                _generator(seed, _TEACHERS),
                told,
            )
        return self._ensembles[seed]

    @cached_property
    def _ensembles(self) -> dict[int, ClipTeachers]:
        """Ensemble of the last seed; retraining is cheaper than keeping all."""
        return {}

    def _kept(self, name: str, make: Callable[[], list[Cell]]) -> list[Cell]:
        return rows_at(self._path(name), make)

    def _name(self, system: System, epsilon: float | None, seed: int) -> str:
        recipe = hashlib.sha256(self.recipes[system].encode()).hexdigest()[:8]
        budget = "" if epsilon is None else f"-{epsilon:g}"
        return f"{system.name.lower().replace('_', '-')}-{recipe}{budget}-{seed}"

    def _path(self, name: str) -> Path:
        return self._cells / f"{name}.json"

    @cached_property
    def _cells(self) -> Path:
        """Folder of cells, named by a hash of these clips and sizes."""
        split, size = self.split, self.size
        parts = (split.public, split.validation, split.private, split.test)
        arrays = [array for part in parts for array in (part.pictures, part.labels)]
        about = [_VERSION, split.speaker, split.classes, size.teachers, size.queries]
        about += [size.samples, size.delta, digest(*arrays, self.embedding.whitening)]
        found = Kept(self.folder).place("cells", about, "")
        found.mkdir(parents=True, exist_ok=True)
        return found


def _share(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of teachers that vote for the winner, (queries,)."""
    most: NDArray[np.float64] = votes.max(axis=1) / votes.sum(axis=1)
    return most


def _number(seed: int, use: int) -> int:
    return int(np.random.SeedSequence([seed, use]).generate_state(1)[0])


def _generator(seed: int, *use: int) -> np.random.Generator:
    return np.random.default_rng([seed, *use])
