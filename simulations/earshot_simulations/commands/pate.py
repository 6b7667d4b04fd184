"""`earshot pate`: votes of teachers on samples that nobody owns."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from earshot_models.commands.output import prepare_folder
from earshot_simulations.commands import pate_budget, pate_label

app = App(
    name="pate",
    help="Let an ensemble of teachers label samples in private, and learn from its answers.",
)


@app.command
def example(out: Path, /, *, seed: int = 1, overwrite: bool = False) -> None:
    """Write votes of 250 teachers to try the other commands on, and a README with the commands.

    Args:
        out: New folder for votes.npy, samples.npy, truth.npy and README.md.
        seed: Seed from which the votes are drawn.
        overwrite: Replace these files where the folder has them.
    """
    from earshot_models.votes import example as votes_to_try
    from earshot_protocol import checks

    checks.whole("seed", seed, 0)
    prepare_folder(out, votes_to_try.FILES, overwrite, named="")
    votes, *_, readme = votes_to_try.write(seed, out)
    print(f"{'votes':<22} {votes}")
    print(f"{'what to run next':<22} {readme}")


app.command(pate_label.app)
app.command(pate_budget.app)


@app.command
def student(
    answers: Path,
    /,
    *,
    samples: Path,
    classes: int,
    out: Path,
    sure: float = 0.95,
    overwrite: bool = False,
) -> None:
    """Learn from answers, and from samples without one; costs nothing more than the answers did.

    scores.npy is what `label interactive --scores` takes.

    Args:
        answers: File answers.csv of `pate label`, or classes as .npy.
        samples: File .npy of samples: those asked about first, then any others.
        classes: Number of classes.
        out: New folder for student.npz and scores.npy.
        sure: Probability from which the student teaches itself a class.
        overwrite: Replace these files where --out has them.
    """
    import numpy as np

    from earshot_models.votes import students as learning
    from earshot_models.votes.electorate import load

    files = ("student.npz", "scores.npy")
    learned = learning.train(load(samples), learning.read_answers(answers), classes, sure)
    prepare_folder(out, files, overwrite)
    np.savez(
        out / files[0],
        coefficients=learned.coefficients,
        intercepts=learned.intercepts,
        means=learned.means,
        scales=learned.scales,
    )
    np.save(out / files[1], learned.scores)
    print(f"{'answered':<22} {learned.answered}")
    print(f"{'taught itself':<22} {learned.taught}")
    print(f"{'student':<22} {out / files[0]}")
