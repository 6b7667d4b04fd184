"""A browser, played over WSGI, in which an operator signs in at the dashboard and sends forms."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

from werkzeug.test import Client, TestResponse

from support.api_caller import Server

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@dataclass
class OperatorsBrowser:
    """One browser with cookies of its own; it says what browsers say of where a form is from."""

    server: Server
    base: str = "http://localhost"
    address: str = "127.0.0.1"
    origin: dict[str, str] = field(default_factory=lambda: {"Sec-Fetch-Site": "same-origin"})

    def __post_init__(self) -> None:
        self.client: Client = self.server.app.test_client()

    def get(self, path: str, **fields: str) -> TestResponse:
        return self._open(path, "GET", headers={"Accept": ACCEPT} | fields)

    def post(self, path: str, form: dict[str, str], **fields: str) -> TestResponse:
        headers = {"Accept": ACCEPT} | self.origin | fields
        return self._open(path, "POST", data=form, headers=headers)

    def sign_in(self, token: str | None = None, to: str = "/") -> TestResponse:
        token = self.server.credentials.operator_token if token is None else token
        return self.post("/sign-in", {"token": token, "to": to})

    def key(self, path: str = "/start") -> str:
        """The form key that a page's form carries."""
        return self.fields(self.get(path))["form_key"]

    def fields(self, page: TestResponse) -> dict[str, str]:
        """What the page's forms send, without buttons and what is not ticked or chosen."""
        found = {
            name: value
            for tag in re.findall(r"<input[^>]*>", page.text)
            if 'type="checkbox"' not in tag and ('type="radio"' not in tag or " checked" in tag)
            for name in re.findall(r' name="([^"]*)"', tag)
            for value in re.findall(r' value="([^"]*)"', tag) or [""]
        }
        found |= dict(re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n([^<]*)<', page.text))
        return {name: html.unescape(value) for name, value in found.items()}

    def _open(self, path: str, method: str, **given: Any) -> TestResponse:
        return self.client.open(
            path,
            method=method,
            base_url=self.base,
            environ_overrides={"REMOTE_ADDR": self.address},
            **given,
        )
