"""Who sent a request, and whether by https, where proxies stand between: theirs is the word."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest
from support.api_caller import Server, problem_of
from werkzeug.test import TestResponse

from earshot_protocol.api import PHASES
from earshot_server.api.limits import FAILURES, subscriber
from earshot_server.api.proxies import BehindProxies, read_address
from earshot_server.processes.children import listen
from earshot_server.store.database import Database


def seen(proxies: int, peer: str = "192.0.2.250", **fields: str) -> tuple[str, str]:
    """The address and the scheme of a request, as the application sees them."""
    environ = {"REMOTE_ADDR": peer, "wsgi.url_scheme": "http"}
    environ |= {f"HTTP_X_FORWARDED_{name.upper()}": value for name, value in fields.items()}
    list(BehindProxies(lambda environ, start: [], proxies)(environ, lambda *_: lambda data: None))
    return environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]


# ------------------------------------------------------------------------------------------ address


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:50123", "203.0.113.7"),
        (' "203.0.113.7:1" ', "203.0.113.7"),
        ("2001:db8::5", "2001:db8::5"),
        ("2001:DB8:0::5", "2001:db8::5"),
        ("[2001:db8::5]", "2001:db8::5"),
        ("[2001:db8::5]:443", "2001:db8::5"),
        ('"[2001:db8::5]:443"', "2001:db8::5"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:8", "fe80::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("[::ffff:203.0.113.7]:80", "203.0.113.7"),
        ("::1", "::1"),
    ],
)
def test_the_port_is_no_part_of_an_address(written: str, meant: str) -> None:
    assert str(read_address(written)) == meant
    assert seen(1, **{"for": written})[0] == meant
    assert seen(0, peer=written.strip(' "'))[0] == meant


@pytest.mark.parametrize(
    "written",
    ["", " ", "unknown", "_hidden", "203.0.113.7:", "203.0.113.7:port", "203.0.113.7:123456",
     "203.0.113", "203.0.113.256", "203.0.113.07", "[203.0.113.7]x", "[2001:db8::5", "2001:db8::g",
     "203.0.113.7;by=x", "for=203.0.113.7", "٣.1.1.1", "1" * 5000, "\x00", "[]", "[]:1", ":80"],
)  # fmt: skip
def test_what_is_no_address_counts_as_the_proxy_s_own(written: str) -> None:
    """Whoever could choose a word of his own would have limits of his own."""
    assert read_address(written) is None
    assert seen(1, **{"for": written})[0] == "192.0.2.250"


@pytest.mark.parametrize(
    ("proxies", "entries", "meant"),
    [
        (0, "198.51.100.1", "192.0.2.250"),
        (1, "198.51.100.1", "198.51.100.1"),
        (1, "198.51.100.66, 198.51.100.1", "198.51.100.1"),
        (2, "198.51.100.1, 192.0.2.9", "198.51.100.1"),
        (2, "198.51.100.66,198.51.100.1:99,192.0.2.9:1", "198.51.100.1"),
        (2, "198.51.100.1", "192.0.2.250"),  # one of the two has added nothing
        (3, "198.51.100.1, 192.0.2.8, 192.0.2.9", "198.51.100.1"),
    ],
)
def test_of_n_proxies_the_outermost_says_who_it_was(proxies: int, entries: str, meant: str) -> None:
    assert seen(proxies, **{"for": entries})[0] == meant


@pytest.mark.parametrize(
    "form",
    ["203.0.113.7", "203.0.113.7:{}", "[2001:db8::5]:{}", "[2001:db8::{:x}]", "::ffff:cb00:7107"],
)
def test_limits_hold_whatever_form_an_address_has(
    database: Database, tmp_path: Path, form: str
) -> None:
    server = Server.over(database, tmp_path, proxies=1)

    def guess(number: int, token: str = "A" * 43) -> TestResponse:
        fields = {"X-Forwarded-For": f"198.51.100.{number}, {form.format(40_000 + number)}"}
        return server.get(PHASES, Authorization=f"Bearer {token}", **fields)

    statuses = [guess(number).status_code for number in range(2 * FAILURES)]
    assert statuses == [401] * FAILURES + [429] * FAILURES
    problem_of(guess(99, server.credentials.operator_token), 429, "rate-limit")
    assert server.read(PHASES).status_code == 200, "others are not meant"


def test_an_address_is_counted_alike_however_it_came() -> None:
    assert subscriber("::ffff:192.0.2.1") == subscriber("192.0.2.1")
    assert subscriber("2001:db8:1:1::9") == subscriber("[2001:db8:1:1::8]:5")
    assert subscriber("2001:db8:1:1::9") != subscriber("2001:db8:1:2::9")


# ------------------------------------------------------------------------------------------- scheme


@pytest.mark.parametrize(
    ("proxies", "words", "scheme"),
    [
        (0, "https", "http"),
        (1, "https", "https"),
        (1, "HTTPS ", "https"),
        (1, "http", "http"),
        (1, "https, http", "http"),  # the client's own word is before that of the proxy
        (2, "https", "https"),  # the outer one sets it, the inner one passes it on
        (2, "http", "http"),
        (2, "https,https", "https"),
        (2, "https, http", "https"),  # each adds its own
        (2, "https, http, http", "http"),  # and so did the client
        (3, "https", "https"),
        (3, "https, http", "http"),  # nobody knows whose words these are
        (3, "https, http, http", "https"),
        (1, "", "http"),
        (2, ",", "http"),
        (1, "wss", "http"),
        (1, "https://", "http"),
    ],
)
def test_one_word_of_the_proxies_is_enough_and_the_client_has_none(
    proxies: int, words: str, scheme: str
) -> None:
    assert seen(proxies, proto=words)[1] == scheme


# ----------------------------------------------------------------------------------- all addresses


@pytest.mark.parametrize("host", ["::", "0::0"])
def test_every_address_of_the_machine_is_that_of_ipv4_as_well(host: str) -> None:
    """A container's check asks 127.0.0.1, and operators' commands ask `::1`."""
    with closing(listen(host, 0)) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, port), timeout=60) as client:
                accepted, peer = listener.accept()
                accepted.close()
                assert str(read_address(peer[0])) == client.getsockname()[0]


def test_one_address_of_ipv6_is_that_alone() -> None:
    with closing(listen("::1", 0)) as listener, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=60)
