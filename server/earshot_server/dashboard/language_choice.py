"""Choice of a page's language: as its address asks, as the browser keeps, or as it prefers."""

from __future__ import annotations

from flask import Response, g, has_request_context, request

from earshot_server.dashboard import languages
from earshot_server.dashboard.languages import ENGLISH, LANGUAGES

COOKIE = "earshot-language"
FIELD = "language"
"""Parameter of a page's address that chooses a language and keeps the choice in the browser."""
_KEPT_SECONDS = 365 * 86_400


def choose() -> None:
    """Choose the language of the present request. Downloads, which programs read, are English."""
    if request.path.endswith(".csv"):
        return
    wanted = (request.args.get(FIELD), request.cookies.get(COOKIE), *_preferred())
    g.language = next((each for each in wanted if each in LANGUAGES), ENGLISH)


def _preferred() -> list[str]:
    """Return the languages that the browser accepts, the best first, without their regions."""
    accepted = request.accept_languages
    return [tag.partition("-")[0].lower() for tag, quality in accepted if quality > 0]


def keep(response: Response) -> Response:
    """State the page's language in its header fields, and keep a choice in the browser."""
    language = languages.language()
    response.headers["Content-Language"] = language
    response.vary.update(("Accept-Language", "Cookie"))
    is_visit = "X-Requested-With" not in request.headers  # a page that renews itself is none
    if is_visit and request.args.get(FIELD) == language:
        response.set_cookie(
            COOKIE,
            language,
            max_age=_KEPT_SECONDS,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
    return response


def _of_request() -> str:
    return g.get("language", ENGLISH) if has_request_context() else ENGLISH


languages.ask(_of_request)
