"""The pages' own configurations of nginx, in a real nginx: once, and twice in a row."""

from __future__ import annotations

import contextlib
import html
import http.client
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from support.api_caller import Server
from support.authority import Authority
from support.debian import program
from support.documented import blocks, section
from support.front_door import PATIENT, Door
from support.networked import PATIENCE, await_, own_port
from support.textbook_link import read

from earshot_protocol.api import PHASES
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.limits import FAILURES
from earshot_server.credentials import Credentials
from earshot_server.store.database import Database

ROOT = Path(__file__).parents[2]
HOST = "earshot.example"
HELPER = "ab" * 32


def documented() -> list[str]:
    """The configurations of the page: of the proxy that clients reach, and of one behind it."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    return blocks(section(page, "Install and start"), "nginx")


@contextlib.contextmanager
def nginx(folder: Path, *servers: str) -> Iterator[None]:
    """Run nginx in the foreground, and everything that it writes in one folder."""
    folder.mkdir()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder / 'pid'};\n"
        f"error_log {folder / 'errors'};\n"
        "events {}\n"
        f"http {{ access_log off;\n{temporary}{''.join(servers)} }}\n"
    )
    process = subprocess.Popen(  # noqa: S603 - nginx of the distribution
        [program("nginx", "nginx-light"), "-p", folder, "-c", folder / "nginx.conf"],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0, (folder / "errors").read_text()


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def outermost(text: str, port: int, upstream: int, certificate: Path) -> str:
    """The page's proxy with a certificate, at a port that is free here."""
    secret = f"ssl_certificate {certificate}; ssl_certificate_key {certificate};"
    return replaced(
        text,
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl; {secret}"),
        ("http://127.0.0.1:8000", f"http://127.0.0.1:{upstream}"),
    )


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@dataclass
class Site:
    """A server behind its proxies, as clients know it.

    Attributes:
        port: Port of the outermost proxy, which is not the usual one.
        tls: Settings with which its certificate is trusted.
        server: Server behind it.
    """

    port: int
    tls: ssl.SSLContext
    server: Server
    cookie: str = field(default="", init=False)

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.port}"

    def ask(
        self,
        path: str,
        form: dict[str, str] | None = None,
        address: str = "127.0.0.1",
        **fields: str,
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """As a browser that says where a form is from by `Origin` alone, with its cookie."""
        connection = http.client.HTTPSConnection(
            HOST, self.port, context=self.tls, timeout=PATIENCE
        )
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        with contextlib.closing(connection):
            plain = socket.create_connection(
                ("127.0.0.1", self.port), timeout=PATIENCE, source_address=(address, 0)
            )
            connection.sock = self.tls.wrap_socket(plain, server_hostname=HOST)
            given = {"Accept": "text/html", "Cookie": self.cookie} | named
            if form is None:
                connection.request("GET", path, headers=given)
            else:
                given |= {"Content-Type": "application/x-www-form-urlencoded"}
                given = {"Origin": self.origin} | given
                connection.request("POST", path, urlencode(form), given)
            response = connection.getresponse()
            said = response.read().decode()
        for set_cookie in response.headers.get_all("Set-Cookie", []):
            self.cookie = set_cookie.partition(";")[0]
        return response.status, response.headers, said


@pytest.fixture(params=[1, 2])
def site(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Iterator[Site]:
    proxies: int = request.param
    credentials = Credentials.load_or_create(tmp_path / "data", leads=True)
    settings = ApiSettings(
        database, credentials, proxies=proxies, phone_page="here", helper_key=HELPER
    )
    server = Server(create_app(settings), credentials)
    authority, port = Authority(tmp_path), own_port()
    first, second = documented()
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(Door(server.app, PATIENT, 2).open())
        upstream, certificate = door.port, authority.certified(HOST)
        if proxies == 2:
            upstream = own_port()
            inner = replaced(
                second,
                ("listen 127.0.0.1:8080;", f"listen 127.0.0.1:{upstream};"),
                ("http://127.0.0.1:8000", f"http://127.0.0.1:{door.port}"),
            )
            stack.enter_context(nginx(tmp_path / "inner", inner))
        outer = outermost(first, port, upstream, certificate)
        stack.enter_context(nginx(tmp_path / "outer", outer))
        for each in {port, upstream}:
            await_(lambda each=each: listens(each), "nginx")  # type: ignore[misc]
        yield Site(port, ssl.create_default_context(cafile=authority.file), server)


@pytest.mark.slow
def test_an_operator_signs_in_and_invites_at_any_port_behind_real_proxies(site: Site) -> None:
    form = {"token": site.server.credentials.operator_token, "to": "/"}
    forged, _, _ = site.ask("/sign-in", form, Origin=f"https://{HOST}")
    assert forged == 403, "that is the usual port, and this page is another's"
    status, fields, said = site.ask("/sign-in", form)
    assert status == 303, said
    assert site.cookie.startswith("__Host-earshot-session=")
    assert "; Secure" in fields["Set-Cookie"]
    assert fields["Strict-Transport-Security"]
    key, *_ = re.findall(r'name="form_key" value="([^"]+)"', site.ask("/invite")[2])
    wanted = {"form_key": key, "uses": "1", "days": "30", "cohort": "", "do": "sign"}
    status, _, page = site.ask("/invite", wanted)
    assert status == 200
    (link,) = re.findall(rf"{site.origin}/phone/#[\w.-]+", html.unescape(page))
    assert read(urlsplit(link).fragment)["server"] == site.origin


@pytest.mark.slow
def test_limits_count_the_client_behind_real_proxies(site: Site) -> None:
    """Each connection has another port, and each client another thing to say of itself."""

    def guess(number: int, address: str) -> int:
        claim = {"X_Forwarded_For": f"198.51.100.{number}", "X_Forwarded_Proto": "http"}
        return site.ask(PHASES, None, address, Authorization="Bearer " + "A" * 43, **claim)[0]

    statuses = [guess(each, "127.0.0.1") for each in range(FAILURES + 3)]
    assert statuses == [401] * FAILURES + [429] * 3
    assert guess(0, "127.0.0.2") == 401, "another client is not refused"
    status, fields, _ = site.ask("/health/live", X_Forwarded_Proto="http")
    assert (status, "Strict-Transport-Security" in fields) == (200, True)


@pytest.mark.slow
def test_a_request_without_a_host_is_answered(site: Site) -> None:
    """HTTP/1.0 has none, and then `$http_host` is empty."""
    with (
        socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as plain,
        site.tls.wrap_socket(plain, server_hostname=HOST) as client,
    ):
        client.sendall(b"GET /health/live HTTP/1.0\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
