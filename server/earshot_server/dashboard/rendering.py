"""Rendering of the dashboard's pages: names that templates use, and security header fields."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from flask import Response, g, render_template

from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_server.dashboard import charts, refusals, sentences, wording
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
    operator, form_key = g.get("operator"), g.get("form_key")
    return render_template(
        f"dashboard/{template}",
        now=now(),
        say=sentences,
        word=wording,
        refusals=refusals,
        charts=charts,
        units=LEDGER_UNITS,
        all_units=tuple(Unit),
        operator=operator,
        form_key=form_key,
        once=secrets.token_urlsafe(16),
        may_change=bool(form_key) and operator.role.includes(Role.OPERATOR),
        may_manage=bool(form_key) and operator.role.includes(Role.ADMIN),
        **shown,
    )


def secure(response: Response) -> Response:
    """Set the security header fields of a page; its forms send `Origin` and `Referer`."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    return response
