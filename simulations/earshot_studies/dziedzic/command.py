"""Commands of the studies of Dziedzic et al. (2023): votes with several winners."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_studies.kit.making import WORK, make

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress
    from earshot_studies.kit.outcome import Reproduction


def _study(module: str, shown: str) -> Callable[..., None]:
    """Return the command that runs a study of this package."""

    def study(
        *,
        data: Path,
        out: Path,
        encoder: str | None = None,
        seeds: int | None = None,
        full: bool = False,
        cache: Path | None = None,
        overwrite: bool = False,
    ) -> None:
        from earshot_protocol import checks
        from earshot_studies.dziedzic.multi_winner import MixtureStudy
        from earshot_studies.kit.mixtures.embedding import Size

        count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 3)
        work = cache or out / WORK
        found = import_module(f"{__package__}.{module}")

        def outcome(progress: Progress) -> Reproduction:
            made: Reproduction = found.reproduce(
                MixtureStudy(data, work, Size(), count, progress, encoder)
            )
            return made

        make(found.NAME, out, overwrite, outcome, keeps=work)

    study.__doc__ = f"{shown}\n{_OPTIONS}"
    return study


_OPTIONS = """
    Args:
        data: Folder that holds esc10, fsdd and perhaps free_sounds.
        out: New folder for the CSV, the picture and the Markdown note.
        encoder: Public encoder: a file, or a shipped one by its name.
        seeds: Repetitions, each with its own mixtures and noise.
        full: Use ten seeds, which takes an hour.
        cache: Folder that keeps mixtures between runs; by default OUT/work.
        overwrite: Replace these files where --out has them.
    """

queries = _study(
    "queries", "Count queries that rules with several winners answer, by labels and noise."
)
student = _study("student", "Train students on such answers, beside private training by DP-SGD.")
capc = _study(
    "capc", "Compare parties before and after answers of the others through a secure sum."
)
