from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st
from support.parameters import learning_parameters
from support.steps import STEPS

from earshot_simulations.engine.dropouts import draw_dropouts


def dropouts_of(phones: int, dropout: float, seed: int) -> dict[str, tuple[int, ...]]:
    parameters = learning_parameters(phones=phones, dropout=dropout, corrupted=0.0)
    return draw_dropouts(parameters, seed)


@example(phones=100, percent=29, seed=0)  # 0.29 · 100 is 28.999999999999996
@given(phones=st.integers(3, 3000), percent=st.integers(0, 99), seed=st.integers(0, 2**64))
def test_exactly_as_many_vanish_as_the_fraction_says(phones: int, percent: int, seed: int) -> None:
    dropouts = draw_dropouts(
        learning_parameters(phones=phones, dropout=percent / 100, corrupted=0.0), seed
    )
    assert tuple(dropouts) == STEPS
    vanished = [phone for gone in dropouts.values() for phone in gone]
    assert len(vanished) == len(set(vanished)) == math.floor(Fraction(percent, 100) * phones)
    assert all(0 <= phone < phones for phone in vanished)
    assert all(list(gone) == sorted(gone) for gone in dropouts.values())
    assert all(type(phone) is int for phone in vanished)


def test_the_seed_decides() -> None:
    assert draw_dropouts(
        learning_parameters(phones=500, dropout=0.2, corrupted=0.0), 7
    ) == dropouts_of(500, 0.2, 7)
    assert draw_dropouts(
        learning_parameters(phones=500, dropout=0.2, corrupted=0.0), 7
    ) != dropouts_of(500, 0.2, 8)


def test_every_phone_and_every_step_is_as_likely() -> None:
    phones, rounds = 50, 400
    of_step = dict.fromkeys(STEPS, 0)
    of_phone = [0] * phones
    for seed in range(rounds):
        for step, gone in draw_dropouts(
            learning_parameters(phones=phones, dropout=0.36, corrupted=0.0), seed
        ).items():
            of_step[step] += len(gone)
            for phone in gone:
                of_phone[phone] += 1
    expected = 18 * rounds / len(STEPS)
    # 800 expected; a binomial deviation is 27.
    assert all(abs(count - expected) < 120 for count in of_step.values())
    # 144 expected; a binomial deviation is 10.
    assert all(abs(count - 144) < 45 for count in of_phone)
