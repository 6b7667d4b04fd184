"""Tables of calls that are refused, as tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def refusals(
    error: type[Exception], *cases: tuple[Callable[[], object], str]
) -> Callable[..., None]:
    """Return a test of calls that raise this error, each with words of its message."""

    @pytest.mark.parametrize(("call", "said"), cases, ids=[said for _, said in cases])
    def refused(call: Callable[[], object], said: str) -> None:
        with pytest.raises(error, match=said):
            call()

    return refused
