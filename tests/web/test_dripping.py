"""The phone in TypeScript and a server whose response never ends: one try has a time in all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.raw_server import DRIPS, saying
from support.web_phone import WebPhone


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone("dripping_oracle.ts") as phones:
        yield phones


@pytest.mark.parametrize("kind", DRIPS)
def test_what_never_ends_is_cut_off(web: WebPhone, kind: str) -> None:
    with saying(DRIPS[kind]) as address:
        name, message, pauses = web.ask("task", address)
    assert (name, pauses) == ("UnavailableError", 4)
    # Node refuses what continues for ever at once.
    assert "timeout" in message or kind == "continue"
