"""Languages of the dashboard: which one a page is in, and its texts in that language.

Texts in the code are English; `texts/<language>.json` has each of them in another language, under
the English text. What is not a page of the dashboard is English: commands, logs and the API.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from flask import Response, g, has_request_context, request

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "de": "Deutsch"}
"""Languages of the dashboard, each with its own name for itself."""
COOKIE = "earshot-language"
FIELD = "language"
"""Parameter of a page's address that chooses a language and keeps the choice in the browser."""
_KEPT_SECONDS = 365 * 86_400


def choose() -> None:
    """Choose the language of the present request: as asked, as kept, or as the browser prefers."""
    for wanted in (request.args.get(FIELD), request.cookies.get(COOKIE)):
        if wanted in LANGUAGES:
            g.language = wanted
            return
    g.language = request.accept_languages.best_match(LANGUAGES, ENGLISH)


def keep(response: Response) -> Response:
    """State the page's language in its header fields, and keep a choice in the browser."""
    response.headers["Content-Language"] = language()
    response.vary.update(("Accept-Language", "Cookie"))
    if request.args.get(FIELD) == language():
        response.set_cookie(
            COOKIE,
            language(),
            max_age=_KEPT_SECONDS,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
    return response


def language() -> str:
    """Return the language of the page that is being made; English outside of one."""
    return g.get("language", ENGLISH) if has_request_context() else ENGLISH


def gettext(text: str, /, **values: object) -> str:
    """Return a text in the page's language.

    Args:
        text: The English text, with `%(name)s` for each value and `%%` for a percent sign.
        values: Values for the text.
    """
    return _texts(language()).get(text, text) % values


def ngettext(one: str, many: str, number: float, /, **values: object) -> str:
    """Return a text that depends on a number, in the page's language.

    Args:
        one: The English text for 1, with `%(name)s` for each value.
        many: The English text for other numbers.
        number: The number; languages whose plural begins elsewhere need more than this.
        values: Values for the text, the number as it is shown among them.
    """
    return gettext(one if number == 1 else many, **values)


def noted(text: str) -> str:
    """Return an English text unchanged: `gettext` translates it where it is shown."""
    return text


class LazyText:
    """Text of ours that pages show in their language, and everything else in English.

    Args:
        text: The English text, with `%(name)s` for each value.
        values: Values for the text; those that are such texts are shown like it.
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    def __str__(self) -> str:
        return self.text % self.values

    def shown(self) -> str:
        """Return the text in the page's language."""
        shown = {
            name: value.shown() if isinstance(value, LazyText) else value
            for name, value in self.values.items()
        }
        return gettext(self.text, **shown)


@cache
def _texts(language: str) -> dict[str, str]:
    if language == ENGLISH:
        return {}
    file = Path(__file__).with_name("texts") / f"{language}.json"
    texts: dict[str, str] = json.loads(file.read_text("utf-8"))
    return texts
