"""Columns of help texts: names of options are never broken, however narrow the terminal is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts.help import ColumnSpec, DefaultFormatter, DescriptionRenderer, NameRenderer

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry
    from rich.console import Console, ConsoleOptions, RenderableType

_NARROW = 0.35
"""Share of the width that names may take; a longer one has a line of its own."""
_NAME = NameRenderer()
_DESCRIPTION = DescriptionRenderer()


def _columns(
    console: Console, options: ConsoleOptions, entries: Sequence[HelpEntry]
) -> tuple[ColumnSpec, ...]:
    """Return the one column of a table of commands or options, each cell a name and its text."""
    del options
    marked = any(entry.required for entry in entries)

    def named(entry: HelpEntry) -> str:
        mark = "* " if entry.required else "  "
        return f"{mark if marked else ''}{_NAME(entry)}"

    names = [named(entry) for entry in entries]
    most = int(console.width * _NARROW)
    width = max((len(name) for name in names if len(name) <= most), default=most)

    def cell(entry: HelpEntry) -> RenderableType:
        from rich.console import Group
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        name = Text(named(entry), style="cyclopts.name", no_wrap=True, overflow="ignore")
        if entry.required:
            name.stylize("cyclopts.required_marker", 0, 1)
        if len(name) > width:
            return Group(name, Padding(_DESCRIPTION(entry), (0, 0, 0, width + 2)))
        beside = Table.grid(padding=(0, 2, 0, 0))
        beside.add_column(width=width, no_wrap=True)
        beside.add_column(overflow="fold")
        beside.add_row(name, _DESCRIPTION(entry))
        return beside

    return (ColumnSpec(renderer=cell),)


FORMATTER = DefaultFormatter(column_specs=_columns)
"""Formatter of all help texts."""
