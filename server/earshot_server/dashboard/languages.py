"""Texts of the dashboard in other languages.

Texts in the code are English; `texts/<language>.json` has each of them in another language, under
the English text. What is not a page of the dashboard is English: commands, reports, logs and the
API. Simulations use these texts without a web server, so nothing here imports one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "de": "Deutsch"}
"""Languages of the dashboard, each with its own name for itself."""

_of_page: Callable[[], str] | None = None


def ask(source: Callable[[], str]) -> None:
    """Ask `source` from now on for the language of the page that is being made."""
    global _of_page  # noqa: PLW0603 - nothing here may import the web server, which knows it
    _of_page = source


def language() -> str:
    """Return the language of the page that is being made; English outside of one."""
    return ENGLISH if _of_page is None else _of_page()


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


def gettext_among(known: frozenset[str], text: str, /, **values: object) -> str:
    """Return a text with words from elsewhere in the page's language, and unknown ones in English.

    Args:
        known: English texts that are translated, each `noted`.
        text: The English text. A kind of phase that is added from outside brings others.
        values: Values for the text.
    """
    if text in known:
        return gettext(text, **values)
    return text % values if values else text  # a name may have a percent sign


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
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts
