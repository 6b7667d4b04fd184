"""Phones in browsers: pages of other origins that may call the phones' endpoints (CORS).

A browser lets a page send a phone's requests to another origin, and read the responses, only if
that origin allows it. The server allows it for the origins that an operator configures, and only
for the endpoints of phones: these ignore cookies, so a page can do no more than any phone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from flask import Blueprint, Flask, Response, request

from earshot_protocol.api import ANSWER, ENROL, LEAVE, REFUSAL, TASK

PAGES: Final = "earshot-pages"
"""Key of an application's `PagesOfPhones` in its extensions; the gateway reads it."""
PREFLIGHTS: Final = "preflights"
"""Name of the blueprint that answers preflight requests."""
_PATHS = frozenset({ENROL, TASK, ANSWER, REFUSAL, LEAVE})
_READ = "Retry-After"
"""Header field that phones read, which a page sees only if it is exposed."""
_SENT = "Content-Digest, Content-Type, Signature, Signature-Input"
"""Header fields that phones send, which a page may send only if they are allowed."""
_SECONDS = 7200
"""Seconds for which a browser may cache a preflight: the most that all browsers honour."""


class PagesOfPhones:
    """Origins whose pages may hold phones.

    Args:
        origins: Origins as browsers write them; by default none, and no CORS fields are sent.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        self._origins = frozenset(origins)

    def install(self, app: Flask) -> None:
        """Add preflight endpoints and CORS fields to an application, if there are any origins."""
        app.extensions[PAGES] = self
        if not self._origins:
            return
        blueprint = Blueprint(PREFLIGHTS, __name__)
        for path in sorted(_PATHS):
            blueprint.add_url_rule(path, f"preflight {path[4:]}", _preflight, methods=["OPTIONS"])
        app.register_blueprint(blueprint)
        app.after_request(self._say)

    def fields(self, method: str, path: str, origin: str | None) -> dict[str, str]:
        """Return the CORS header fields of a response.

        Args:
            method: Method of the request.
            path: Path of the request.
            origin: Value of its field `Origin`, if it has one.
        """
        if not self._origins or path not in _PATHS or method not in ("POST", "OPTIONS"):
            return {}
        # A cache must not serve one origin's response to another.
        said = {"Vary": "Origin"}
        if origin in self._origins:
            said |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _READ}
            if method == "OPTIONS":
                said |= {
                    "Access-Control-Allow-Methods": "POST",
                    "Access-Control-Allow-Headers": _SENT,
                    "Access-Control-Max-Age": str(_SECONDS),
                }
        return said

    def _say(self, response: Response) -> Response:
        said = self.fields(request.method, request.path, request.headers.get("Origin"))
        if said:
            response.vary.add(said.pop("Vary"))
        response.headers.update(said)
        return response


def _preflight() -> Response:
    """Answer a preflight request; `_say` adds the header fields."""
    return Response(status=204)
