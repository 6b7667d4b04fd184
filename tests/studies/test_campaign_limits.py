"""What limits and kinds of noise cost a week's sum: equal ε, and the truth of small cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_studies.campaigns import limits
from earshot_studies.campaigns.limits import EPSILON, GAUSSIAN, LAPLACE, NEWEST, PROJECTED
from earshot_studies.campaigns.year import WEEKS


@pytest.mark.parametrize(
    ("noise", "event", "accountant"),
    [
        # Ledgers compose Gaussian noise by Rényi divergences, and Laplace noise by its losses.
        (GAUSSIAN, GaussianDpEvent, RdpAccountant),
        pytest.param(
            LAPLACE,
            lambda multiplier: LaplaceDpEvent(multiplier / np.sqrt(2)),
            PLDAccountant,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_year_of_each_noise_costs_the_same(
    noise: str, event: Callable[[float], DpEvent], accountant: Callable[[], PrivacyAccountant]
) -> None:
    year = SelfComposedDpEvent(event(limits.multiplier_of(noise)), WEEKS)
    same = accountant().compose(year).get_epsilon(TOLD_DELTA)
    assert same == pytest.approx(EPSILON, rel=0.02)
    exact = PLDAccountant().compose(year).get_epsilon(TOLD_DELTA)
    assert 0.9 * EPSILON < exact <= EPSILON


def test_what_no_limit_reaches_is_counted_whole() -> None:
    year = limits.limited(200, 1, limits=(10_000,))
    for sums in year.sums.values():
        assert sums == pytest.approx(year.made)


def test_limits_lose_what_they_say() -> None:
    year = limits.limited(500, 1, limits=(4,))
    whole = year.made.sum()
    by_length = year.sums[4, PROJECTED, GAUSSIAN].sum()
    by_sum = year.sums[4, PROJECTED, LAPLACE].sum()
    newest = year.sums[4, NEWEST, GAUSSIAN].sum()
    assert by_sum == pytest.approx(newest)
    assert newest < by_length < whole


def test_the_newest_of_a_phone_are_its_own() -> None:
    assert limits.ranks(np.array([0, 0, 2, 2, 2, 5])).tolist() == [0, 1, 0, 1, 2, 0]


@pytest.mark.slow
def test_projection_with_gaussian_noise_errs_least(tmp_path: Path) -> None:
    outcome = limits.reproduce(seeds=2, crowds=(2000,))
    errors = {(row["limit"], row["noise"]): float(row["error"]) for row in outcome.rows}
    assert min(errors, key=lambda way: errors[way]) == (PROJECTED, GAUSSIAN)
    outcome.draw(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
