"""The commands that compare ways to limit and to estimate a campaign's weekly counts."""

from __future__ import annotations

from pathlib import Path


def estimated_counts(*, out: Path, seeds: int = 10, overwrite: bool = False) -> None:
    """Show what smoothing and correction of a campaign's weekly counts are worth.

    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        seeds: Years for each crowd and each quality of the map.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_studies.campaigns import estimates
    from earshot_studies.kit.making import make

    checks.whole("seeds", seeds)
    make(
        estimates.NAME,
        out,
        overwrite,
        lambda progress: estimates.reproduce(seeds, progress=progress),
        resumes=(),
    )


def limited_counts(*, out: Path, seeds: int = 5, overwrite: bool = False) -> None:
    """Show what limits and kinds of noise cost a week's counts, at equal ε over a year.

    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        seeds: Years of each crowd.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_studies.campaigns import limits
    from earshot_studies.kit.making import make

    checks.whole("seeds", seeds)
    make(
        limits.NAME,
        out,
        overwrite,
        lambda progress: limits.reproduce(seeds, progress=progress),
        resumes=(),
    )
