"""Measures of tagging against textbook loops, and what has no meaning left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.examples import examples

from earshot_protocol.errors import InvalidInputError
from earshot_studies.muschiol.tagging import metrics


def counts(truth, named):
    """Right names, wrong names and missed labels."""
    right = wrong = missed = 0
    for there, said in zip(truth, named, strict=True):
        right += bool(there and said)
        wrong += bool(said and not there)
        missed += bool(there and not said)
    return right, wrong, missed


def prf(right, wrong, missed):
    precision = right / (right + wrong) if right + wrong else 0.0
    recall = right / (right + missed) if right + missed else 0.0
    f1 = 2 * right / (2 * right + wrong + missed) if right else 0.0
    return np.array([precision, recall, f1])


def textbook_average_precision(truth, likely):
    """Σ (Rₙ − Rₙ₋₁) Pₙ over thresholds from above; equal scores are named together."""
    total, before = 0.0, 0.0
    for level in sorted(set(likely), reverse=True):
        right, wrong, missed = counts(truth, likely >= level)
        recall = right / (right + missed)
        total += (recall - before) * right / (right + wrong)
        before = recall
    return total


def textbook_area(truth, likely):
    """How often a clip with the label ranks above one without; a tie is half."""
    wins = pairs = 0.0
    for one, there in zip(likely, truth, strict=True):
        for other, here in zip(likely, truth, strict=True):
            if there and not here:
                pairs += 1
                wins += float(one > other) + 0.5 * float(one == other)
    return wins / pairs


@settings(max_examples=examples(40))
@given(
    truth=arrays.arrays(np.int8, (9, 4), elements=st.integers(0, 1)),
    likely=arrays.arrays(np.int8, (9, 4), elements=st.integers(0, 8)),
    cut=st.integers(0, 9),
)
def test_every_measure_is_the_textbooks(truth, likely, cut):
    usable = [i for i in range(4) if 0 < truth[:, i].sum() < 9]
    named = likely >= cut
    if not usable:
        with pytest.raises(InvalidInputError, match="none can be scored"):
            metrics.scores(truth, named)
        return
    got = metrics.scores(truth, named, likely / 8)
    each = [counts(truth[:, i], named[:, i]) for i in usable]
    macro = np.mean([prf(*own) for own in each], axis=0)
    micro = prf(*counts(truth.ravel(), named.ravel()))
    np.testing.assert_allclose([got.macro_precision, got.macro_recall, got.macro_f1], macro)
    np.testing.assert_allclose([got.micro_precision, got.micro_recall, got.micro_f1], micro)
    precisions = [textbook_average_precision(truth[:, i], likely[:, i]) for i in usable]
    assert got.mean_average_precision == pytest.approx(np.mean(precisions))
    areas = [textbook_area(truth[:, i], likely[:, i]) for i in usable]
    assert got.area == pytest.approx(np.mean(areas))
    assert got.never_named == sum(not named[:, i].any() for i in usable)
    assert (got.measured, got.left_out) == (len(usable), 4 - len(usable))


def test_a_label_that_is_never_named_pulls_precision_down_and_is_counted():
    truth = np.array([[1, 1], [0, 1], [1, 0]])
    named = np.array([[1, 0], [0, 0], [1, 0]])
    got = metrics.scores(truth, named)
    assert (got.macro_precision, got.never_named, got.zero_division) == (0.5, 1, 0.0)
    assert got.micro_precision == 1.0
    assert got.mean_average_precision is None
    assert got.area is None
    assert got.micro_recall == 0.5


def test_a_label_of_no_clip_and_one_of_every_clip_are_left_out_of_macro_means_alone():
    truth = np.array([[1, 0, 1], [0, 0, 1]])
    perfect = metrics.scores(truth, truth, truth.astype(float))
    assert (perfect.macro_f1, perfect.mean_average_precision, perfect.area) == (1.0, 1.0, 1.0)
    assert (perfect.measured, perfect.left_out) == (1, 2)
    named = truth.copy()
    named[:, 1] = 1
    assert metrics.scores(truth, named).macro_precision == 1.0
    assert metrics.scores(truth, named).micro_precision == 0.6
    precisions = metrics.average_precisions(truth, truth.astype(float))
    np.testing.assert_array_equal(precisions, [1.0, np.nan, np.nan])


def test_what_cannot_be_scored_is_refused():
    truth = np.array([[1, 0], [0, 1]])
    for wrong in (truth[0], truth + 1, truth[:0]):
        with pytest.raises(InvalidInputError):
            metrics.scores(wrong, wrong)
    with pytest.raises(InvalidInputError, match="named"):
        metrics.scores(truth, truth[:1])
    with pytest.raises(InvalidInputError, match="finite"):
        metrics.scores(truth, truth, np.array([[1, np.nan], [0, 1]]))
