"""Options of a command that are for one of several ways alone."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

import typer

from earshot_protocol.errors import InvalidInputError

Way = TypeVar("Way", bound=str)


def given(context: typer.Context) -> set[str]:
    """The parameters of a command that were given on its command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def check_options(
    context: typer.Context,
    said: AbstractSet[str],
    way: Way,
    options: Mapping[Way, AbstractSet[str]],
    prefix: str = "",
) -> None:
    """Refuse options of other ways than the one that is taken.

    Args:
        context: of the command.
        said: the parameters that were given.
        way: which is taken.
        options: the parameters of each way; those that are in none are for all.
        prefix: what a way is written with.

    Raises:
        InvalidInputError: names them, and what they are for.
    """
    others = said & frozenset().union(*options.values()) - options[way]
    if not others:
        return
    written = {str(each.name): each.opts[0] for each in context.command.params}
    wanted = [f"{prefix}{other}" for other, own in options.items() if others & own]
    raise InvalidInputError(
        f"{', '.join(sorted(written[name] for name in others))}: not for {prefix}{way}, but for "
        f"{' or '.join(wanted)}; leave it out, or choose that"
    )
