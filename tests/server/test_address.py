"""A data folder remembers where its server listens: what is given wins, and the rest stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import earshot

from earshot_protocol.errors import InvalidInputError
from earshot_server.commands.options import OperatorConnection
from earshot_server.commands.serve import serve
from earshot_server.processes import supervisor
from earshot_server.processes.address import (
    ADDRESS_FILE,
    Address,
    AddressFileError,
    remember,
    remembered,
)
from earshot_server.processes.settings import Serving


def test_a_folder_without_an_address_means_the_default(tmp_path: Path) -> None:
    assert remembered(tmp_path / "missing") == Address("127.0.0.1", 8000)
    assert Serving(tmp_path).address == Address("127.0.0.1", 8000)


def test_what_is_given_wins_and_what_is_not_stays(tmp_path: Path) -> None:
    remember(tmp_path, Address("::1", 8123))
    assert (tmp_path / ADDRESS_FILE).stat().st_mode & 0o777 == 0o600
    assert Serving(tmp_path).address == Address("::1", 8123)
    assert Serving(tmp_path, port=9000).address == Address("::1", 9000)
    assert Serving(tmp_path, host="localhost").address == Address("localhost", 8123)
    assert Serving(tmp_path, port=0).address.port == 0


def test_an_address_that_other_machines_reach_needs_its_proxy_every_time(tmp_path: Path) -> None:
    remember(tmp_path, Address("0.0.0.0", 8123))  # noqa: S104 - what is to be refused
    with pytest.raises(InvalidInputError, match="--proxies"):
        Serving(tmp_path).check()
    Serving(tmp_path, proxies=1).check()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (Address("127.0.0.1", 8123), "http://127.0.0.1:8123"),
        (Address("0.0.0.0", 8123), "http://127.0.0.1:8123"),  # noqa: S104 - nobody listens
        (Address("::", 8123), "http://[::1]:8123"),
        (Address("localhost", 80), "http://localhost:80"),
    ],
)
def test_operators_reach_the_server_of_the_folder(
    address: Address, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EARSHOT_SERVER", raising=False)
    monkeypatch.setenv("EARSHOT_OPERATOR_TOKEN", "x" * 43)
    remember(tmp_path, address)
    assert OperatorConnection(data=tmp_path).operator()._server == url
    other = OperatorConnection("http://127.0.0.1:1", tmp_path).operator()
    assert other._server == "http://127.0.0.1:1"


def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    odd = (b'{"host": 7}', b'{"port": "no"}', b'{"prot": 8000}', b'{"host": "\xff"}')
    for content in (b"", b"{}x", *odd):
        (tmp_path / ADDRESS_FILE).write_bytes(content)
        with pytest.raises(AddressFileError, match="delete it"):
            remembered(tmp_path)
    refused = earshot("serve", "--data", tmp_path)
    assert refused.returncode == 2
    assert str(tmp_path / ADDRESS_FILE) in refused.stderr


@pytest.mark.parametrize("proxies", [0, 1])
def test_serve_prints_one_url_and_where_the_token_is(
    proxies: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "http://127.0.0.1:8123"
    monkeypatch.setattr(supervisor, "serve", lambda settings, ready: ready(url))
    serve(settings=Serving(data=Path("data"), proxies=proxies))
    where = "at your proxy's https address" if proxies else "there"
    assert capsys.readouterr().out.splitlines() == [
        f"Earshot serves at {url}",
        f"Dashboard: sign in {where} with the token in {tmp_path / 'data' / 'operator.token'}",
    ]
