"""Tables 5.1 to 5.3 of Muschiol (2021): as printed, and measured on one set of ensembles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.metrics import TaggingScores, scores
from earshot_server.accounting.votes.muschiol import raw_thresholds
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.taggers.ensembles import EnsembleScores, Scored

BASELINE = 1
"""One teacher that learned from all mixtures."""
TEACHERS = (10, 20, 50)
ADAPTIVE = "adaptive"
THRESHOLDS = ("0.2", "0.4", "0.6", ADAPTIVE)
CHECKS = ("0.4", "0.6")
HALF = "half"
"""In the place of th_c: as many are answered by every ensemble, those of the largest m."""
BY_ITSELF = 0.5
"""Above it a teacher by itself names a label; Muschiol does not say which was taken."""

Three = tuple[float, float, float]
"""Precision, recall and F1, macro means."""
Named = NDArray[np.bool_]


class Overall(NamedTuple):
    """A row of Table 5.1; `precision` is mAP, `area` AUC."""

    precision: float
    area: float
    threshold: str
    together: Three

    @property
    def ranking(self) -> Mapping[str, float]:
        """Of averaged votes."""
        return {"mAP": self.precision, "AUC": self.area}


TABLE_5_1: Mapping[int, Overall] = {
    BASELINE: Overall(0.268, 0.923, ADAPTIVE, (0.316, 0.336, 0.256)),
    10: Overall(0.219, 0.919, "0.2", (0.401, 0.265, 0.228)),
    20: Overall(0.199, 0.909, "0.2", (0.447, 0.230, 0.204)),
    50: Overall(0.186, 0.898, "0.2", (0.573, 0.169, 0.173)),
}
ALONE_5_1: Mapping[int, Three] = {
    10: (0.350, 0.188, 0.167),
    20: (0.305, 0.151, 0.136),
    50: (0.271, 0.114, 0.112),
}
"""Of single teachers, on average."""

TABLE_5_2: Mapping[tuple[int, str], Three] = {
    (BASELINE, ADAPTIVE): (0.316, 0.336, 0.256),
    (BASELINE, "0.2"): (0.390, 0.349, 0.278),
    (BASELINE, "0.4"): (0.568, 0.220, 0.235),
    (BASELINE, "0.6"): (0.713, 0.142, 0.175),
    (10, ADAPTIVE): (0.224, 0.311, 0.187),
    (10, "0.2"): (0.401, 0.265, 0.228),
    (10, "0.4"): (0.551, 0.170, 0.193),
    (10, "0.6"): (0.683, 0.108, 0.143),
    (20, ADAPTIVE): (0.191, 0.259, 0.158),
    (20, "0.2"): (0.447, 0.230, 0.201),
    (20, "0.4"): (0.650, 0.133, 0.156),
    (20, "0.6"): (0.791, 0.078, 0.105),
    (50, ADAPTIVE): (0.180, 0.186, 0.136),
    (50, "0.2"): (0.573, 0.169, 0.173),
    (50, "0.4"): (0.781, 0.090, 0.118),
    (50, "0.6"): (0.880, 0.053, 0.078),
}

PASSED: Mapping[tuple[int, str], float] = {
    (10, "0.4"): 0.65,
    (20, "0.4"): 0.62,
    (50, "0.4"): 0.60,
    (10, "0.6"): 0.48,
    (20, "0.6"): 0.47,
    (50, "0.6"): 0.44,
}
"""Share of the samples that is answered, by teachers and th_c (Table 5.3)."""

TABLE_5_3: Mapping[tuple[int, str, str], Three] = {
    (10, ADAPTIVE, "0.4"): (0.416, 0.314, 0.269),
    (20, ADAPTIVE, "0.4"): (0.570, 0.237, 0.233),
    (50, ADAPTIVE, "0.4"): (0.739, 0.184, 0.211),
    (10, "0.2", "0.4"): (0.441, 0.370, 0.283),
    (20, "0.2", "0.4"): (0.497, 0.304, 0.252),
    (50, "0.2", "0.4"): (0.633, 0.247, 0.243),
    (10, ADAPTIVE, "0.6"): (0.565, 0.322, 0.304),
    (20, ADAPTIVE, "0.6"): (0.660, 0.251, 0.256),
    (50, ADAPTIVE, "0.6"): (0.787, 0.223, 0.257),
    (10, "0.2", "0.6"): (0.506, 0.390, 0.308),
    (20, "0.2", "0.6"): (0.548, 0.325, 0.274),
    (50, "0.2", "0.6"): (0.667, 0.291, 0.284),
    (10, "0.4", "0.6"): (0.602, 0.322, 0.309),
    (20, "0.4", "0.6"): (0.696, 0.260, 0.266),
    (50, "0.4", "0.6"): (0.799, 0.232, 0.266),
}


def measured(ensemble: Callable[[int], EnsembleScores]) -> Iterator[Row]:
    """All three tables on the ensembles of one seed, on test mixtures.

    The best threshold of each is chosen on validation mixtures (Muschiol chose it where it
    scored). Rows of Table 5.3 have the baseline on the same answered mixtures, at its best
    threshold, and what becomes of all mixtures where those unanswered have no names.

    Args:
        ensemble: of so many teachers; 1 for the baseline.
    """
    baseline = ensemble(BASELINE)
    best = best_threshold(baseline.validation)
    alone_names = named(baseline.test, best)
    yield from _without_check(BASELINE, baseline)
    for teachers in TEACHERS:
        found = ensemble(teachers)
        yield from _without_check(teachers, found)
        for check in (*CHECKS, HALF):
            passed = _passed(found.test, check)
            for threshold in THRESHOLDS:
                if (teachers, threshold, check) not in TABLE_5_3 and check != HALF:
                    continue
                row = _row("5.3", teachers, threshold, check)
                row["answered"] = float(passed.mean())
                yield row | _checked(found.test, threshold, passed, alone_names)
    passed = _passed(baseline.test, HALF)
    row = _row("5.3", BASELINE, best, HALF) | {"answered": float(passed.mean())}
    yield row | _checked(baseline.test, best, passed, alone_names)


def _without_check(teachers: int, found: EnsembleScores) -> Iterator[Row]:
    """Its row of Table 5.1, and those of Table 5.2."""
    best, truth = best_threshold(found.validation), found.test.truth
    overall = scores(truth, named(found.test, best), found.test.mean())
    row = _row("5.1", teachers, best, "") | _three(overall) | _likely(overall)
    if teachers > 1:
        each = [scores(truth, own > BY_ITSELF, own) for own in found.test.probabilities]
        for name, column in (*_MACRO.items(), ("mAP", "mean_average_precision")):
            values = [getattr(one, column) for one in each]
            row[f"alone_{name}"] = float(np.mean(values))
        ranked = [float(one.mean_average_precision or 0.0) for one in each]
        row["alone_mAP_deviation"] = float(np.std(ranked, ddof=1))
    yield row
    for threshold in THRESHOLDS:
        yield _row("5.2", teachers, threshold, "") | _three(
            scores(truth, named(found.test, threshold))
        )


def named(scored: Scored, threshold: str) -> Named:
    """Which labels an ensemble names without noise, bool (mixtures, labels).

    Args:
        scored: what its teachers say.
        threshold: a share of the teachers, or `ADAPTIVE`: the middle of the widest gap.
    """
    mean = scored.mean()
    # Of shares as of votes: a gap's middle moves with its ends.
    limits = raw_thresholds(mean)[:, None] if threshold == ADAPTIVE else float(threshold)
    above: Named = mean > limits
    return above


def best_threshold(validation: Scored) -> str:
    """Of Muschiol's thresholds the one with the best macro F1 there."""
    found = {
        threshold: scores(validation.truth, named(validation, threshold)).macro_f1
        for threshold in THRESHOLDS
    }
    return max(found, key=lambda threshold: found[threshold])


def _passed(scored: Scored, check: str) -> Named:
    """Which mixtures are answered, bool (mixtures,)."""
    most = scored.mean().max(axis=1)
    passed: Named = np.zeros(len(most), dtype=np.bool_)
    if check == HALF:
        passed[np.argsort(-most, kind="stable")[: len(most) // 2]] = True
    else:
        passed |= most >= float(check)
    return passed


def _checked(scored: Scored, threshold: str, passed: Named, baseline: Named) -> Row:
    """Of what was answered; nothing, if there is no label in some of it and not in all."""
    names, answered = named(scored, threshold), scored.truth[passed].astype(bool)
    if not len(answered) or not (answered.any(axis=0) & ~answered.all(axis=0)).any():
        return {}
    found = _three(scores(answered, names[passed]))
    same = scores(scored.truth[passed], baseline[passed])
    asked = scores(scored.truth, names & passed[:, None])
    for name, column in _MACRO.items():
        found[f"baseline_{name}"] = getattr(same, column)
        found[f"asked_{name}"] = getattr(asked, column)
    return found


def _row(table: str, teachers: int, threshold: str, check: str) -> Row:
    return {"table": table, "teachers": teachers, "th_e": threshold, "th_c": check}


_MACRO = {"P": "macro_precision", "R": "macro_recall", "F1": "macro_f1"}
_MICRO = {"micro_P": "micro_precision", "micro_R": "micro_recall", "micro_F1": "micro_f1"}


def _three(found: TaggingScores) -> Row:
    """Macro means, and macro precision by the two other ways to treat labels nobody names."""
    row: Row = {name: getattr(found, column) for name, column in {**_MACRO, **_MICRO}.items()}
    spoken = found.measured - found.never_named
    row["never_named"] = found.never_named
    row["P_if_one"] = found.macro_precision + found.never_named / found.measured
    row["P_of_named"] = found.macro_precision * found.measured / spoken if spoken else ""
    return row


def _likely(found: TaggingScores) -> Row:
    return {"mAP": found.mean_average_precision or 0.0, "AUC": found.area or 0.0}
