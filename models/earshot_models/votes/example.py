"""Example votes of teachers trained on a few synthetic records each."""

from __future__ import annotations

import io
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_protocol.files import replace_file

VOTES, SAMPLES, TRUTH, README = "votes.npy", "samples.npy", "truth.npy", "README.md"
FILES = (VOTES, SAMPLES, TRUTH, README)

TEACHERS, CLASSES, QUERIES = 250, 10, 400
RECORDS = 3
"""Records of each class that one teacher learned from."""
_DIMENSIONS = 16


@dataclass(frozen=True)
class ExampleVotes:
    """Votes of teachers on synthetic samples of known classes.

    Attributes:
        votes: Class that each teacher names, int8 (teachers, queries).
        samples: Samples, float32 (queries, dimensions).
        truth: Class of each sample, int8 (queries,).
    """

    votes: npt.NDArray[np.int8]
    samples: npt.NDArray[np.float32]
    truth: npt.NDArray[np.int8]

    @property
    def accuracies(self) -> npt.NDArray[np.float64]:
        """Accuracy of each teacher, (teachers,)."""
        return np.asarray((self.votes == self.truth).mean(axis=1))

    @property
    def plurality(self) -> float:
        """Accuracy of the plurality vote."""
        counts = (self.votes[:, :, None] == np.arange(CLASSES)).sum(axis=0)
        return float((counts.argmax(axis=1) == self.truth).mean())


def draw(seed: int) -> ExampleVotes:
    """Draw normally distributed classes, and teachers that are nearest-mean classifiers.

    Args:
        seed: Seed.
    """
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(CLASSES, _DIMENSIONS))
    truth = generator.integers(0, CLASSES, QUERIES, dtype=np.int8)
    samples = (means[truth] + generator.normal(size=(QUERIES, _DIMENSIONS))).astype(np.float32)
    votes = np.empty((TEACHERS, QUERIES), dtype=np.int8)
    for own in votes:
        records = means + generator.normal(size=(RECORDS, CLASSES, _DIMENSIONS))
        distances = ((samples[:, None] - records.mean(axis=0)) ** 2).sum(axis=2)
        own[:] = distances.argmin(axis=1)
    return ExampleVotes(votes, samples, truth)


def write(seed: int, folder: Path) -> list[Path]:
    """Write votes, samples, truth and a README of commands, each file atomically."""
    drawn = draw(seed)
    for name, array in ((VOTES, drawn.votes), (SAMPLES, drawn.samples), (TRUTH, drawn.truth)):
        content = io.BytesIO()
        np.save(content, array)
        replace_file(folder / name, content.getvalue())
    replace_file(folder / README, _readme(drawn, seed, folder))
    return [folder / name for name in FILES]


def _readme(drawn: ExampleVotes, seed: int, folder: Path) -> str:
    each = 100 * drawn.accuracies
    votes, samples, truth, labels, student = (
        shlex.quote(str(folder / name)) for name in (VOTES, SAMPLES, TRUTH, "labels", "student")
    )
    return f"""# Votes to try

Drawn from seed {seed}; they hold nobody's data. Each of the {TEACHERS} teachers learned {CLASSES}
classes, each from {RECORDS} records of its own.

| right | share of the samples |
|---|---|
| a teacher alone | {each.mean():.0f} % ({each.min():.0f} to {each.max():.0f} %) |
| the class with most votes, without noise | {100 * drawn.plurality:.0f} % |

| file | holds |
|---|---|
| `{VOTES}` | the class that each teacher names, {TEACHERS} teachers × {QUERIES} queries |
| `{SAMPLES}` | the samples, {QUERIES} × {_DIMENSIONS} numbers, from which the student learns |
| `{TRUTH}` | the class of each sample, to check the student with: real votes come without it |

In a checkout, `earshot` is `.venv/bin/earshot`. How many queries does ε = 2 buy?

```sh
earshot pate budget confident --teachers {TEACHERS} --classes {CLASSES} --threshold 200 \\
    --check-sigma 150 --sigma 40 --epsilon 2 --delta 1e-5
```

Ask the teachers until the budget is spent, and publish what the votes cost, with noise:

```sh
earshot pate label confident {votes} --teachers {TEACHERS} --classes {CLASSES} \\
    --threshold 200 --check-sigma 150 --sigma 40 --epsilon 2 --delta 1e-5 \\
    --votes-cost dependent --out {labels}
```

Let a student learn from the answers, and from the samples without one:

```sh
earshot pate student {labels}/answers.csv --samples {samples} \\
    --classes {CLASSES} --out {student}
```

How often is the student right?

```sh
python -c "import sys; from numpy import load; scores, truth = map(load, sys.argv[1:]); \\
print((scores.argmax(1) == truth).mean())" {student}/scores.npy {truth}
```
"""
