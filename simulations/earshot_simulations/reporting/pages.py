"""Pages made of templates beside their modules; all values are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from earshot_server.dashboard.wording import as_text
from earshot_simulations.reporting import words


def page(
    template: str,
    *,
    title: str,
    kicker: str,
    headline: str,
    version: str,
    warnings: Sequence[str] = (),
    figures: Mapping[str, str] | None = None,
    **content: Any,
) -> str:
    """Return a whole page without external resources.

    Args:
        template: Path in this package of the template that fills the blocks of `page.html`.
        title: Title of the window, after "Earshot:".
        kicker: Kind of the page.
        headline: Outcome in one plain sentence.
        version: Version of Earshot.
        warnings: Highlighted paragraphs below the headline.
        figures: Figures at the head of the page, by name.
        content: Values that the template uses.
    """
    return _TEMPLATES.get_template(template).render(
        title=title,
        kicker=kicker,
        headline=headline,
        version=version,
        warnings=warnings,
        figures=figures,
        **content,
    )


def fragment(template: str, **content: Any) -> str:
    """Return markup for a foreign page, such as a notebook.

    Args:
        template: Path in this package of the template.
        content: Values that the template names.
    """
    return _TEMPLATES.get_template(template).render(**content)


def _shown(value: object) -> object:
    """Return a template's value as a page shows it; markup, such as a command, stays as it is."""
    shown = as_text(value, words.printable)
    if not isinstance(shown, str) or isinstance(shown, Markup):
        return shown
    return words.unbroken(shown)


_TEMPLATES = Environment(
    loader=PackageLoader("earshot_simulations", ""),
    autoescape=True,
    keep_trailing_newline=True,
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["word"] = words
