"""Scores of named labels: the four measures of the paper, label by label."""

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
        accuracy: Fraction of correct names, present or not (ACC).
        balanced: Mean of recall and specificity (BAC).
        area: Area under the receiver operating characteristic (AUC).
        precision: Mean average precision (MAP).
        labels: BAC of each label, float64 (labels,); NaN where it is undefined.
        measured: Number of labels that are in some but not all of the rows. For the others balanced
            accuracy, area and precision are undefined, and they are left out.
    """

    accuracy: float
    balanced: float
    area: float
    precision: float
    labels: NDArray[np.float64]
    measured: int

    def row(self) -> dict[str, float]:
        """Return the scores by the paper's abbreviations."""
        values = (self.accuracy, self.balanced, self.area, self.precision)
        return dict(zip(MEASURES, values, strict=True))


def balanced_accuracy(truth: NDArray[np.integer], named: NDArray[np.integer]) -> float:
    """Return BAC alone, over the labels that are in some but not all of the rows."""
    there, said = np.asarray(truth).astype(bool), np.asarray(named) == 1
    return float(np.nanmean(_balanced(there, said)))


def scores(
    truth: NDArray[np.integer],
    named: NDArray[np.integer],
    likely: NDArray[np.floating] | None = None,
) -> Scores:
    """Score named labels.

    Args:
        truth: True labels, 0 or 1, (rows, labels).
        named: Named labels, 0 or 1, (rows, labels).
        likely: Probability of each label, (rows, labels). Without it only names can be ranked, and
            the area equals balanced accuracy, as in the paper's Tables 3, 11, 12 and 15.

    Raises:
        InvalidInputError: No label is in some but not all of the rows.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    there, said = np.asarray(truth).astype(bool), np.asarray(named).astype(bool)
    ranks = said.astype(np.float64) if likely is None else np.asarray(likely)
    usable = np.flatnonzero(there.any(axis=0) & ~there.all(axis=0)) if len(there) else np.array([])
    if not len(usable):
        raise InvalidInputError(
            f"{len(there)} rows: no label is in some of them and not in others, so none can be "
            "scored"
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
    """Return BAC by label; NaN without positives or without negatives."""
    positives, negatives = there.sum(axis=0), (~there).sum(axis=0)
    with np.errstate(invalid="ignore"):
        recall = (there & said).sum(axis=0) / positives
        spared = (~there & ~said).sum(axis=0) / negatives
    both: NDArray[np.float64] = (recall + spared) / 2
    return both
