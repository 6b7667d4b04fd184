"""Which ensembles `earshot reproduce audioset-privacy` asks."""

from __future__ import annotations

from pathlib import Path

from earshot_protocol.progress import Progress
from earshot_simulations.reproductions.audioset_privacy import TEACHERS, Plan
from earshot_simulations.reproductions.audioset_settings import Ensemble
from earshot_simulations.tagging.ensembles import prepared
from earshot_simulations.tagging.powers import contents
from earshot_simulations.tagging.school import Kind, Teaching
from earshot_simulations.tagging.study import Size, Study

_LINEAR = {"mixtures": 6000, "validation": 1000, "test": 100}
"""Mixtures of linear teachers, 120 each; nothing is tested on but what they are asked about."""


def on_mixtures(
    data: Path,
    work: Path,
    kind: str,
    queries: int,
    seeds: int,
    processes: int,
    progress: Progress,
) -> Plan:
    """Fifty teachers on mixtures of mel powers; small networks are those of `audioset-ensemble`.

    Args:
        data: folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        work: folder of ensembles, and of what was measured of each.
        kind: of teachers.
        queries: mixtures that costs are worked out from, at most.
        seeds: ensembles.
        processes: that train.
        progress: told how far it is.

    Raises:
        InvalidParametersError: another kind, or no queries or seeds.
        DatasetError, UnreadableFileError, InvalidInputError: as `tagging.ensembles.prepared`.
    """
    chosen = Kind(kind)
    linear = chosen is Kind.LINEAR
    size = Size(queries=queries, **_LINEAR) if linear else Size()
    study = Study(data, work, size)
    teaching = Teaching(kind=chosen)

    def ensemble(seed: int) -> Ensemble:
        asked = prepared(study, TEACHERS, seed, teaching, processes, progress).queries
        return Ensemble.of(asked.probabilities[:, :queries], asked.truth[:queries])

    each = size.mixtures // TEACHERS
    whom = "logistic regressions on mean and deviation of mel bands" if linear else "small networks"
    number = min(queries, size.queries)
    described = f"""Here {TEACHERS} teachers, {whom}, learn from
{each} mixtures each: one to three of 20 labels (ESC-10 and spoken digits) and a background of free
sounds, two on average, in a long tail (rank^−.8). They are asked about {number:,} mixtures of other
recordings, {seeds} times with other mixtures and teachers. Teachers share recordings, so the unit
that is protected is a mixture."""
    key = repr((contents(data), size, study.recipe, study.mel, teaching, queries))
    return Plan(ensemble, described, key, work, seeds, progress)
