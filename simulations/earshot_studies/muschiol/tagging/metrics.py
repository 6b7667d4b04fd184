"""Metrics of multi-label tagging (Muschiol 2021, section 2.1.2).

A macro mean is over the labels that are in some of the clips and not in all: for the others recall,
average precision and area are undefined. A label that is never named has a precision of 0 by
convention (`ZERO_DIVISION`), which lowers the macro mean; the number of such labels is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError

ZERO_DIVISION = 0.0
"""Precision of a label that is never named, and F1 of one that is never named correctly."""


@dataclass(frozen=True)
class TaggingScores:
    """Scores of names and probabilities.

    Attributes:
        macro_precision, macro_recall, macro_f1: Means over labels.
        micro_precision, micro_recall, micro_f1: Scores of all names of all labels together.
        mean_average_precision: Mean of the average precision over labels (mAP); None without
            probabilities.
        area: Mean of the area under the ROC curve over labels (AUC); None without probabilities.
        never_named: Measured labels that are never named.
        measured: Labels of the macro means.
        left_out: Labels that are in no clip, or in every one.
        zero_division: Value used for 0/0.
    """

    macro_precision: float
    macro_recall: float
    macro_f1: float
    micro_precision: float
    micro_recall: float
    micro_f1: float
    mean_average_precision: float | None
    area: float | None
    never_named: int
    measured: int
    left_out: int
    zero_division: float = ZERO_DIVISION


def scores(
    truth: NDArray[np.integer],
    named: NDArray[np.integer] | NDArray[np.bool_],
    probabilities: NDArray[np.floating] | None = None,
) -> TaggingScores:
    """Score names of labels, by scikit-learn.

    Args:
        truth: True labels of each clip, 0 or 1, (clips, labels).
        named: Labels named in each clip, 0 or 1, (clips, labels).
        probabilities: Probability of each label, or any score that ranks clips, (clips, labels).

    Raises:
        InvalidInputError: Shapes differ, scores are not finite, or no label is in some clips but
            not in all of them.
    """
    from sklearn.metrics import roc_auc_score

    there, usable = _measured(truth)
    said = np.asarray(named)
    if said.shape != there.shape or not np.isin(said, (0, 1)).all():
        raise InvalidInputError(f"named of shape {said.shape}: must be 0 or 1, {there.shape}")
    said = said.astype(bool)
    # scikit-learn takes a single column as binary; repeating it keeps the macro mean.
    columns = np.resize(usable, max(2, len(usable)))
    macro = _three(there[:, columns], said[:, columns], "macro")
    micro = _three(there.ravel(), said.ravel(), "binary")
    precision = area = None
    if probabilities is not None:
        precision = float(np.nanmean(average_precisions(truth, probabilities)))
        areas = [roc_auc_score(there[:, i], np.asarray(probabilities)[:, i]) for i in usable]
        area = float(np.mean(areas))
    return TaggingScores(
        macro_precision=macro[0],
        macro_recall=macro[1],
        macro_f1=macro[2],
        micro_precision=micro[0],
        micro_recall=micro[1],
        micro_f1=micro[2],
        mean_average_precision=precision,
        area=area,
        never_named=int((~said[:, usable].any(axis=0)).sum()),
        measured=len(usable),
        left_out=there.shape[1] - len(usable),
    )


def average_precisions(
    truth: NDArray[np.integer], probabilities: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the average precision of each label, float64 (labels,); NaN where undefined.

    Raises:
        InvalidInputError: The input is one that `scores` refuses.
    """
    from sklearn.metrics import average_precision_score

    there, usable = _measured(truth)
    likely = np.asarray(probabilities)
    if likely.shape != there.shape or not np.isfinite(likely).all():
        raise InvalidInputError(
            f"probabilities of shape {likely.shape}: must be finite, {there.shape}"
        )
    found = np.full(there.shape[1], np.nan)
    for label in usable:
        found[label] = average_precision_score(there[:, label], likely[:, label])
    return found


def _three(
    there: NDArray[np.bool_], said: NDArray[np.bool_], average: str
) -> tuple[float, float, float]:
    """Return precision, recall and F1: binary, (names,), or the mean over columns."""
    from sklearn.metrics import precision_recall_fscore_support

    found = precision_recall_fscore_support(
        there, said, average=average, zero_division=ZERO_DIVISION
    )
    return float(found[0]), float(found[1]), float(found[2])


def _measured(truth: NDArray[np.integer]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    there = np.asarray(truth)
    if there.ndim != 2 or not np.isin(there, (0, 1)).all():
        raise InvalidInputError(f"truth of shape {there.shape}: must be 0 or 1, (clips, labels)")
    there = there.astype(bool)
    usable = np.flatnonzero(there.any(axis=0) & ~there.all(axis=0)) if len(there) else np.array([])
    if not len(usable):
        raise InvalidInputError(
            f"{len(there)} clips: no label is in some of them and not in others, so none can be "
            "scored"
        )
    return there, usable
