"""The HTML that a report is made of; words become text, never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template

from earshot_simulations.learning.drawing import Picture
from earshot_simulations.learning.wording import printable


def document(
    *,
    title: str,
    kicker: str,
    headline: str,
    sections: Sequence[str],
    version: str,
    notes: str = "",
    figures: str = "",
    sound: bool = False,
) -> str:
    """A whole page that loads nothing from elsewhere.

    Args:
        title: of the window, after the name of the system.
        kicker: what kind of page it is.
        headline: the outcome in one plain sentence.
        sections: the page's parts, as HTML; empty ones are left out.
        version: of Earshot.
        notes: below the headline, as HTML.
        figures: below these, as HTML.
        sound: whether it may play sound that it holds itself.
    """
    page = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        title=escaped(title),
        kicker=escaped(kicker),
        headline=escaped(headline),
        notes=notes,
        figures=figures,
        sections="\n".join(filter(None, sections)),
        version=escaped(version),
        media="; media-src data:" if sound else "",
    )


def escaped(words: str) -> str:
    """Words as they stand in the page."""
    return html.escape(printable(words))


def section(title: str, content: str) -> str:
    """A part of the report under its heading."""
    return f"<section><h2>{title}</h2>\n{content}</section>"


def lead(words: str) -> str:
    """The paragraph that a section begins with."""
    return f'<p class="lead">{escaped(words)}</p>'


def alert(words: str) -> str:
    """A paragraph that nobody shall miss."""
    return f'<p class="alert">{escaped(words)}</p>'


def details(summary: str, content: str) -> str:
    """Details, for those who ask."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def figures(pairs: Mapping[str, str]) -> str:
    """The figures at the head of a page, by what they are called."""
    each = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs.items())
    return f'<dl class="figures">{"".join(each)}</dl>'


def grid(*figures: str, kind: str = "grid") -> str:
    """Figures side by side, as the page's width allows."""
    return f'<div class="{kind}">{"".join(figures)}</div>'


def card(title: str, *words: str) -> str:
    """Paragraphs under a heading, framed like a picture."""
    paragraphs = "".join(f"<p>{escaped(each)}</p>" for each in words)
    return f'<div class="card"><h3>{escaped(title)}</h3>{paragraphs}</div>'


def cards(*each: str) -> str:
    """Cards below each other, in one place of a grid."""
    return f'<div class="cards">{"".join(each)}</div>'


def figure(title: str, words: str, picture: Picture | None, *below: str) -> str:
    """A picture under its title; None for one that a run that ended early never came to.

    Args:
        title: of the picture, as HTML.
        words: that say more.
        picture: above what else there is.
        below: as HTML.
    """
    image = '<p class="missing">Nothing to show: the run did not get this far.</p>'
    if picture is not None:
        words = f"{words} {picture.remark}".rstrip()
        image = f'<img alt="{escaped(picture.alt)}" src="{picture.source}">'
    caption = f"<figcaption><strong>{title}</strong>{escaped(words)}</figcaption>"
    return f"<figure>{caption}{image}{''.join(below)}</figure>"


def player(name: str, source: str) -> str:
    """What plays a sound.

    Args:
        name: of the sound, for who does not see what is beside it.
        source: a data URI.
    """
    return (
        f'<audio controls preload="metadata" aria-label="{escaped(name)}" src="{source}"></audio>'
    )


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], foot: Sequence[str] = ()
) -> str:
    """A table whose columns marked with # hold numbers; the first cell of a row is its heading."""
    marks = [' class="number"' if column.startswith("#") else "" for column in columns]
    heads = "".join(
        f'<th scope="col"{mark}>{escaped(column.removeprefix("#"))}</th>'
        for mark, column in zip(marks, columns, strict=True)
    )
    body = "".join(_row(row, marks) for row in rows)
    last = f"<tfoot>{_row(foot, marks)}</tfoot>" if foot else ""
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>{last}</table></div>"
    )


def _row(cells: Sequence[str], marks: Sequence[str]) -> str:
    others = "".join(
        f"<td{mark}>{escaped(cell)}</td>" for mark, cell in zip(marks[1:], cells[1:], strict=True)
    )
    return f'<tr><th scope="row">{escaped(cells[0])}</th>{others}</tr>'
