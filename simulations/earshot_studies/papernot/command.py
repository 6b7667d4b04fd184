"""The command of Table 1 of Papernot et al. (2018)."""

from __future__ import annotations

from pathlib import Path

from earshot_studies.kit.making import make


def published_votes(*, data: Path, out: Path, seeds: int = 10, overwrite: bool = False) -> None:
    """Show the cost of Confident-GNMax on published votes: as printed, by that accounting, soundly.

    Args:
        data: Folder of mnist.npy, svhn.npy and adult.npy, the votes that were published with the
            paper.
        out: New folder for the CSV, the picture and the Markdown note.
        seeds: Draws of the noise.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_studies.papernot import table_1

    checks.whole("seeds", seeds)
    votes = table_1.read_votes(data)
    make(
        table_1.NAME,
        out,
        overwrite,
        lambda progress: table_1.reproduce(votes, seeds, progress=progress),
        resumes=(),
    )
