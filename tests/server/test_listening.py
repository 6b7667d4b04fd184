"""The server listens for other machines behind a proxy that speaks TLS, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot_protocol.errors import InvalidInputError
from earshot_server.processes.settings import Serving


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "192.0.2.7", "fe80::1", "::ffff:127.0.0.1", "example.org", "localhost."],  # noqa: S104
)
def test_other_machines_reach_it_through_a_proxy_only(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="--proxies 1 if the server"):
        Serving(tmp_path, host=host).check()
    Serving(tmp_path, host=host, proxies=1).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.7.7.7", "::1", "localhost"])
def test_this_machine_reaches_it_with_a_proxy_or_without(host: str, tmp_path: Path) -> None:
    Serving(tmp_path, host=host).check()
    Serving(tmp_path, host=host, proxies=1).check()
