"""The HTML that a report is made of; words become text, never markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template

from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.words import printable


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
    """Return a whole page that loads nothing from elsewhere.

    Args:
        title: Title of the window, after the name of the system.
        kicker: Kind of the page.
        headline: Outcome in one plain sentence.
        sections: Parts of the page, as HTML; empty ones are left out.
        version: Version of Earshot.
        notes: HTML below the headline.
        figures: HTML below the notes.
        sound: Whether the page may play sound that it contains.
    """
    page = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
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
    """Escape words for the page."""
    return html.escape(printable(words))


def section(title: str, content: str) -> str:
    """Return a part of the report under its heading."""
    return f"<section><h2>{title}</h2>\n{content}</section>"


def lead(words: str) -> str:
    """Return the paragraph that a section begins with."""
    return f'<p class="lead">{escaped(words)}</p>'


def alert(words: str) -> str:
    """Return a paragraph that nobody must miss."""
    return f'<p class="alert">{escaped(words)}</p>'


def details(summary: str, content: str) -> str:
    """Return details that the reader can unfold."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def figures(pairs: Mapping[str, str]) -> str:
    """Return the figures at the head of a page, by name."""
    each = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs.items())
    return f'<dl class="figures">{"".join(each)}</dl>'


def grid(*figures: str, kind: str = "grid") -> str:
    """Return figures side by side, as the page's width allows."""
    return f'<div class="{kind}">{"".join(figures)}</div>'


def card(title: str, *words: str) -> str:
    """Return paragraphs under a heading, framed like a picture."""
    paragraphs = "".join(f"<p>{escaped(each)}</p>" for each in words)
    return f'<div class="card"><h3>{escaped(title)}</h3>{paragraphs}</div>'


def cards(*each: str) -> str:
    """Return cards below each other, in one place of a grid."""
    return f'<div class="cards">{"".join(each)}</div>'


def figure(title: str, words: str, picture: Picture | None, *below: str) -> str:
    """Return a picture under its title, or a remark if the run ended before it.

    Args:
        title: Title of the picture, as HTML.
        words: Caption of the picture.
        picture: Picture; None if a run that ended early never reached it.
        below: HTML below the picture.
    """
    image = '<p class="missing">Nothing to show: the run did not get this far.</p>'
    if picture is not None:
        words = f"{words} {picture.remark}".rstrip()
        image = f'<img alt="{escaped(picture.alt)}" src="{picture.source}">'
    caption = f"<figcaption><strong>{title}</strong>{escaped(words)}</figcaption>"
    return f"<figure>{caption}{image}{''.join(below)}</figure>"


def player(name: str, source: str) -> str:
    """Return a player of a sound.

    Args:
        name: Name of the sound, for readers who cannot see what is beside it.
        source: Data URI of the sound.
    """
    return (
        f'<audio controls preload="metadata" aria-label="{escaped(name)}" src="{source}"></audio>'
    )


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], foot: Sequence[str] = ()
) -> str:
    """Return a table: columns marked with # hold numbers, and a row's first cell is its heading."""
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
