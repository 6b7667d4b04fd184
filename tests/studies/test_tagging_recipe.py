"""The parts of the recipe against what section 4.4 of Muschiol (2021) says they do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.muschiol.tagging import losses, mixup
from earshot_studies.muschiol.tagging.balanced_batches import Balanced, Cycle
from earshot_studies.muschiol.tagging.examples import Examples
from earshot_studies.muschiol.tagging.mixup import Mixup


def test_mixup_doubles_a_list_with_the_neighbours_in_it():
    pairs = mixup.doubled(7, np.random.default_rng(0))
    assert len(pairs) == 14
    assert sorted(pairs.first[:7]) == list(range(7))
    np.testing.assert_array_equal(pairs.first[:7], pairs.second[:7])
    order = list(pairs.first[:7])
    assert order != list(range(7))
    for first, second in zip(pairs.first[7:], pairs.second[7:], strict=True):
        assert order[(order.index(first) + 1) % 7] == second
    assert sorted(pairs.first[7:]) == list(range(7))


def test_a_mixed_example_has_the_labels_of_both():
    targets = np.array([[1.0, 0, 0], [0, 0.2, 0], [0, 0, 0]])
    pairs = mixup.ClipPairs(np.array([0, 0, 1]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(pairs.present(targets), [[1, 0, 0], [1, 1, 0], [0, 1, 0]])


@pytest.mark.parametrize("concentration", [0.3, 1.0, 4.0])
def test_shares_have_the_moments_of_their_beta(concentration):
    drawn = Mixup(concentration=concentration).shares(40_000, np.random.default_rng(1))
    assert drawn.dtype == np.float32
    assert 0 <= drawn.min() < 0.2 < 0.8 < drawn.max() <= 1
    # Of Beta(a, a): 1/2, and 1 / (4 (2a + 1)).
    assert abs(drawn.mean() - 0.5) < 0.01
    assert drawn.var() == pytest.approx(1 / (4 * (2 * concentration + 1)), rel=0.03)


@given(
    present=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12),
    rounds=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(60))
def test_labels_take_turns_and_so_do_the_examples_of_each(present, rounds, seed):
    there = np.array(present)
    order = Balanced(there, np.random.default_rng(seed))
    bare = ~there.any(axis=1)
    groups = [set(np.flatnonzero(group)) for group in (*there.T, bare)]
    groups = [group for group in groups if group]
    turn = len(groups)
    drawn = order.draw(rounds * turn).tolist()
    for start in range(0, len(drawn), turn):
        # In a turn each group has one: there is an assignment of examples to groups.
        assert matched(drawn[start : start + turn], groups)
    assert set(drawn) <= set(range(len(there)))


def matched(examples, groups):
    """Whether each example can be given to a group of its own that has it (Hall's marriages)."""
    if not examples:
        return True
    first, rest = examples[0], examples[1:]
    for place, group in enumerate(groups):
        if first in group and matched(rest, groups[:place] + groups[place + 1 :]):
            return True
    return False


def test_a_rare_label_comes_as_often_as_a_frequent_one():
    there = np.zeros((100, 2), dtype=bool)
    there[:98, 0], there[98:, 1] = True, True
    drawn = Balanced(there, np.random.default_rng(2)).draw(400)
    assert (drawn >= 98).sum() == 200
    # The frequent label's examples go round twice and a bit before any comes a fourth time.
    times = np.bincount(drawn, minlength=100)
    assert set(times[:98]) == {2, 3}
    assert set(times[98:]) == {100}
    plain = Cycle(np.arange(100), np.random.default_rng(2)).draw(400)
    assert set(np.bincount(plain)) == {4}


def test_no_examples_make_no_order():
    for order in (lambda g: Balanced(np.zeros((0, 2), bool), g), lambda g: Cycle(np.array([]), g)):
        with pytest.raises(InvalidInputError, match="at least one"):
            order(np.random.default_rng(0))


def test_the_weights_of_definition_13_are_a_sigmoid_of_negatives_over_positives():
    targets = np.zeros((10, 4))
    targets[:5, 0], targets[:1, 1], targets[:, 2] = 1, 0.4, 1
    sigmoid = [1 / (1 + np.exp(-ratio)) for ratio in (5 / 5, 9 / 1, 0 / 10)]
    np.testing.assert_allclose(losses.positive_weights(targets), [*sigmoid, 1.0], rtol=1e-6)
    rare = np.zeros((30_000, 1))
    rare[0] = 1
    assert losses.positive_weights(rare) == 1.0


def test_the_loss_is_definition_13():
    random = np.random.default_rng(3)
    targets, logits = random.random((5, 4)), random.normal(size=(5, 4))
    weights = random.random(4)
    expected = []
    for target, logit in zip(targets, logits, strict=True):
        total = 0.0
        for t, x, p in zip(target, logit, weights, strict=True):
            y = 1 / (1 + np.exp(-x))
            total -= p * t * np.log(y) + (1 - t) * np.log(1 - y)
        expected.append(total / 4)
    np.testing.assert_allclose(
        losses.binary_cross_entropy(targets, logits, weights), expected, rtol=1e-6
    )


def test_adaptive_weights_favour_what_is_learned_badly_and_have_a_mean_of_1():
    present = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]], dtype=bool)
    weights = losses.example_weights(present, np.array([0.9, 0.5, np.nan]))
    # 1 − AP is .1, .5 and, for the unknown, their mean .3; so is that of an example without labels.
    raw = np.array([0.1, 0.5, 0.3, 0.3, 0.3])
    np.testing.assert_allclose(weights, raw / raw.mean(), rtol=1e-6)
    perfect = losses.example_weights(present, np.ones(3))
    np.testing.assert_array_equal(perfect, np.ones(5))


def test_mixup_out_of_range_is_refused():
    with pytest.raises(InvalidParametersError):
        Mixup(concentration=0)


def test_examples_are_float32_whatever_they_are_made_of():
    examples = Examples.of(np.ones((1, 2, 3)), np.array([[True]]))
    assert (examples.power.dtype, examples.targets.dtype) == (np.float32, np.float32)
