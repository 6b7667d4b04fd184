"""How right names of several labels are: the four measures of the paper, label by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError

MEASURES = ("ACC", "BAC", "AUC", "MAP")


@dataclass(frozen=True)
class Scores:
    """Means over labels (Private Multi-Winner Voting, appendix D).

    Attributes:
        accuracy: ACC, fraction of names, present or not, that are right.
        balanced: BAC, mean of recall and specificity.
        area: AUC, under the receiver operating characteristic.
        precision: MAP, mean average precision.
        labels: BAC of each label, float64 (labels,); NaN where it has no meaning.
        measured: labels that are in some of what was scored and not in all of it: of all others
            balanced accuracy, area and precision have no meaning, and they are left out.
    """

    accuracy: float
    balanced: float
    area: float
    precision: float
    labels: NDArray[np.float64]
    measured: int

    def row(self) -> dict[str, float]:
        """By the paper's abbreviations."""
        values = (self.accuracy, self.balanced, self.area, self.precision)
        return dict(zip(MEASURES, values, strict=True))


def balanced_accuracy(truth: NDArray[np.integer], named: NDArray[np.integer]) -> float:
    """BAC alone, over the labels that are in some rows and not in others."""
    there, said = np.asarray(truth).astype(bool), np.asarray(named) == 1
    return float(np.nanmean(_balanced(there, said)))


def scores(
    truth: NDArray[np.integer],
    named: NDArray[np.integer],
    likely: NDArray[np.floating] | None = None,
) -> Scores:
    """Score names of labels.

    Args:
        truth: 0 or 1, (rows, labels).
        named: 0 or 1, (rows, labels).
        likely: how likely each label is, (rows, labels). Without it names are all there is to rank
            by, and the area equals balanced accuracy, as in the paper's Tables 3, 11, 12 and 15.

    Raises:
        InvalidInputError: no label is in some rows and not in others.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    there, said = np.asarray(truth).astype(bool), np.asarray(named).astype(bool)
    ranks = said.astype(np.float64) if likely is None else np.asarray(likely)
    usable = np.flatnonzero(there.any(axis=0) & ~there.all(axis=0)) if len(there) else np.array([])
    if not len(usable):
        raise InvalidInputError(
            f"{len(there)} rows: no label is in some of them and not in others, so that none can "
            "be scored"
        )
    balanced = _balanced(there, said)
    areas = [roc_auc_score(there[:, label], ranks[:, label]) for label in usable]
    precisions = [average_precision_score(there[:, label], ranks[:, label]) for label in usable]
    return Scores(
        float((there == said).mean()),
        float(np.nanmean(balanced)),
        float(np.mean(areas)),
        float(np.mean(precisions)),
        balanced,
        len(usable),
    )


def _balanced(there: NDArray[np.bool_], said: NDArray[np.bool_]) -> NDArray[np.float64]:
    """By label; NaN where there are no positives or no negatives."""
    positives, negatives = there.sum(axis=0), (~there).sum(axis=0)
    with np.errstate(invalid="ignore"):
        recall = (there & said).sum(axis=0) / positives
        spared = (~there & ~said).sum(axis=0) / negatives
    both: NDArray[np.float64] = (recall + spared) / 2
    return both
