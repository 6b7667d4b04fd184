"""Many digits, for oracles by mpmath."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mpmath
import pytest


def digits(number: int) -> Callable[[], Iterator[None]]:
    """Return a fixture that lets all tests of a file calculate with this many digits."""

    @pytest.fixture(autouse=True)
    def precise() -> Iterator[None]:
        with mpmath.workdps(number):
            yield

    return precise
