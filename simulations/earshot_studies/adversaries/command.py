"""The command that lets phones do the most harm that their vectors can."""

from __future__ import annotations

from pathlib import Path


def harmful_vectors(*, out: Path, seeds: int = 4, overwrite: bool = False) -> None:
    """Show what a few of a thousand phones do to names and to a week's counts.

    Sums are by two operators, with vectors whose length a proof would bound, and without.

    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        seeds: Crowds of each attack.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_studies.adversaries import harm
    from earshot_studies.kit.making import make

    checks.whole("seeds", seeds)
    make(
        harm.NAME,
        out,
        overwrite,
        lambda progress: harm.reproduce(seeds, progress=progress),
        resumes=(),
    )
