"""Rendering of the dashboard's pages: names that templates use, and security header fields."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from flask import Response, g, render_template, request
from markupsafe import Markup, escape

from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_server.dashboard import (
    charts,
    language_choice,
    languages,
    refusals,
    sentences,
    wording,
)
from earshot_server.records import MOST_TRIES
from earshot_server.store.operators import Role

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing inline, nothing from other origins."""


def render(template: str, /, now: Callable[[], float] = time.time, **shown: Any) -> str:
    """Return a page.

    Args:
        template: Name of its template.
        now: Clock in seconds since 1970.
        shown: Values for the template.
    """
    if "language" not in g:  # a problem's page, at any path
        language_choice.choose()
    operator, form_key = g.get("operator"), g.get("form_key")
    return render_template(
        f"dashboard/{template}",
        _=_text,
        ngettext=_counted_text,
        language=languages.language(),
        other_languages=_other_languages(),
        now=now(),
        say=sentences,
        word=wording,
        refusals=refusals,
        charts=charts,
        units=LEDGER_UNITS,
        most_tries=MOST_TRIES,
        all_units=tuple(Unit),
        operator=operator,
        form_key=form_key,
        once=secrets.token_urlsafe(16),
        may_change=bool(form_key) and operator.role.includes(Role.OPERATOR),
        may_manage=bool(form_key) and operator.role.includes(Role.ADMIN),
        **shown,
    )


def secure(response: Response) -> Response:
    """Set the header fields of a page's security and language; forms send `Origin`, `Referer`."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    return language_choice.keep(response) if response.mimetype == "text/html" else response


def _text(text: str, /, **values: object) -> Markup:
    """Return a text in the page's language; it may hold markup, its values are escaped."""
    return Markup(languages.gettext(text, **_safe(values)))  # noqa: S704 - texts are our own


def _counted_text(one: str, many: str, number: float, /, **values: object) -> Markup:
    return _text(one if number == 1 else many, **values)


def _safe(values: dict[str, object]) -> dict[str, object]:
    return {name: escape(wording.as_text(value)) for name, value in values.items()}


def _other_languages() -> list[tuple[str, str, str]]:
    """Return each other language: its code, its own name, and this page's address in it.

    Addresses are queries alone: a path such as `/\\example.org` would lead to another site. Pages
    that answer a form have none: what they show, such as a token, is not shown again.
    """
    if request.method == "POST":
        return []
    return [
        (code, name, f"?{urlencode({**request.args, language_choice.FIELD: code})}")
        for code, name in languages.LANGUAGES.items()
        if code != languages.language()
    ]
