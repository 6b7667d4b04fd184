"""Figures 5.6 to 5.11 of Muschiol (2021): what the parts of its recipe are good for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from earshot_models.tagging.metrics import scores
from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.ensemble_orderings import Ordering
from earshot_studies.muschiol.taggers.ensembles import prepared
from earshot_studies.muschiol.work import Work

ALL, NO_MIXUP, SHUFFLED = "as it is", "without mixup", "without balanced batches"
WEIGHTED, ADAPTED = "with a weighted loss", "with adaptive weights"
RECIPES: Mapping[str, Mapping[str, bool]] = {
    ALL: {},
    NO_MIXUP: {"mixup": False},
    SHUFFLED: {"balanced": False},
    WEIGHTED: {"weighted": True},
    ADAPTED: {"adaptive": True},
}
NAME = "audioset-recipes"
OF = 10
"""Muschiol shows teachers of its ensemble of ten."""
_FEW, _MORE = 2, 10
"""Teachers that are trained by each recipe, and with all that takes long."""
_BATCHES, _BATCH = 1000, 32
"""Whose labels are counted (Figure 5.9)."""


def of_seed(work: Work, seed: int) -> list[Row]:
    """The mean over a few teachers of ten of each recipe, on test mixtures.

    Args:
        work: of networks; linear taggers have no recipe.
        seed: of mixtures and networks: the same for all recipes.
    """
    balance = {True: 0.0, False: 0.0}
    pool = work.study.material(seed).teacher(0, OF)
    for balanced in balance:
        balance[balanced] = most_over_least(pool.truth, balanced, seed)
    rows: list[Row] = []
    for name, changes in RECIPES.items():
        teaching = replace(work.teaching, **changes)  # type: ignore[arg-type]
        found = prepared(
            work.study,
            OF,
            seed,
            teaching,
            work.processes,
            work.progress,
            first=_MORE if work.full else _FEW,
        ).test
        each = [scores(found.truth, own > 0.5, own) for own in found.probabilities]
        row: Row = {
            "seed": seed,
            "recipe": name,
            "teachers": len(each),
            "mAP": float(np.mean([one.mean_average_precision or 0.0 for one in each])),
            "AUC": float(np.mean([one.area or 0.0 for one in each])),
            "F1": float(np.mean([one.macro_f1 for one in each])),
            "most_over_least": balance[teaching.balanced],
        }
        rows.append(row)
    return rows


def most_over_least(
    truth: np.ndarray[tuple[int, ...], np.dtype[np.int8]], balanced: bool, seed: int
) -> float:
    """How much oftener the most frequent label is in a thousand batches than the rarest there is.

    Args:
        truth: of what a teacher has, (mixtures, labels).
        balanced: whether labels take turns.
        seed: of their order.
    """
    from earshot_models.tagging.balanced_batches import Balanced, Cycle, Order

    generator = np.random.default_rng(seed)
    there = truth.astype(bool)
    order: Order = (
        Balanced(there, generator) if balanced else Cycle(np.arange(len(there)), generator)
    )
    counts = there[order.draw(_BATCHES * _BATCH)].sum(axis=0)
    return float(counts.max() / counts[counts > 0].min())


def gains(rows: Sequence[Row]) -> list[Ordering]:
    """Figures 5.7, 5.8 and 5.11: what parts of the recipe are good for.

    Args:
        rows: of `of_seed`, of all seeds.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    values = {(row["seed"], row["recipe"]): row for row in rows}

    def less(one: str, other: str, column: str) -> Estimate:
        first, second = (
            [float(values[seed, name][column]) for seed in seeds] for name in (one, other)
        )
        return paired(first, second)

    return [
        Ordering("Mixup helps (5.7)", "mAP: with − without", None, less(ALL, NO_MIXUP, "mAP")),
        Ordering("Mixup helps (5.7)", "AUC: with − without", None, less(ALL, NO_MIXUP, "AUC")),
        Ordering(
            "Balanced batches help (5.8)", "mAP: with − without", None, less(ALL, SHUFFLED, "mAP")
        ),
        Ordering(
            "… and cost some AUC (5.8)", "AUC: without − with", None, less(SHUFFLED, ALL, "AUC")
        ),
        Ordering(
            "A weighted loss does not help (Definition 13)",
            "mAP: with − without",
            None,
            less(WEIGHTED, ALL, "mAP"),
            no_gain=True,
        ),
        Ordering(
            "Adaptive weights do not help (5.11)",
            "mAP: with − without",
            None,
            less(ADAPTED, ALL, "mAP"),
            no_gain=True,
        ),
    ]


ALL, NO_MIXUP, SHUFFLED = "as it is", "without mixup", "without balanced batches"
WEIGHTED, ADAPTED = "with a weighted loss", "with adaptive weights"
