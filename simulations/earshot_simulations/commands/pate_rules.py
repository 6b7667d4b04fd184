"""One sub-command per rule of votes: the rule's own options, and those that all rules share.

Annotations are evaluated in this module: subclasses elsewhere inherit these options, and postponed
annotations would be resolved in the module of the subclass.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from cyclopts import App, Parameter

from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.rules.table import RULES
from earshot_models.votes.tally.tallies import Counter, SumSettings
from earshot_protocol.errors import InvalidInputError

_SUMS = SumSettings()


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Options of the tally.

    Attributes:
        tally: Counter of the votes: a trusted curator (central), or secure sums (federated).
        at_once: Queries of one secure sum.
        dropout: Share of the teachers that may vanish during a sum (ρ).
        corrupted: Share of the teachers that may be corrupted (γ).
        as_json: Print JSON, and nothing else.
    """

    tally: Counter = Counter.CENTRAL
    at_once: int = _SUMS.at_once
    dropout: float = _SUMS.dropout
    corrupted: float = _SUMS.corrupted
    as_json: Annotated[bool, Parameter(name="--json")] = False

    def __post_init__(self) -> None:
        named = [
            name for name in ("dropout", "corrupted") if getattr(self, name) != getattr(_SUMS, name)
        ]
        if named and self.tally is Counter.CENTRAL:
            options = ", ".join(f"--{name}" for name in named)
            raise InvalidInputError(f"{options}: for secure sums; add --tally federated")

    @property
    def sums(self) -> SumSettings:
        """Settings of secure sums."""
        return SumSettings(self.dropout, self.corrupted, at_once=self.at_once)


class Extra(NamedTuple):
    """Option that only some rules have.

    Attributes:
        type: Type, with its help text.
        needed: Whether it must be given.
    """

    type: Any
    needed: bool = False


def add_rules(
    app: App,
    run: Callable[..., None],
    shared: type[Counting],
    extras: Callable[[type[VotingRule]], Mapping[str, Extra]] = lambda rule: {},
    positional: Mapping[str, Any] | None = None,
) -> None:
    """Add a sub-command for every rule.

    Args:
        app: Command whose sub-commands they are.
        run: Function that runs it, called with positional arguments, the rule, the shared options,
            and further options by name.
        shared: Class of the options that all rules share.
        extras: Function that returns further options of a rule.
        positional: Types of the positional arguments, by name.
    """
    for name, rule in RULES.items():
        types = dict(positional or {})
        parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in types]
        for each, flattened in (("rule", rule), ("shared", shared)):
            types[each] = Annotated[flattened, Parameter(name="*")]
            parameters.append(inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY))
        for each, extra in extras(rule).items():
            default = inspect.Parameter.empty if extra.needed else None
            parameters.append(
                inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=default)
            )
            types[each] = extra.type
        app.command(_described(run, rule, parameters, types), name=name)


def _described(
    run: Callable[..., None],
    rule: type[VotingRule],
    parameters: list[inspect.Parameter],
    types: Mapping[str, Any],
) -> Callable[..., None]:
    """Return a copy of the function with the signature for the command line."""

    def command(*given: Any, **options: Any) -> None:
        run(*given, **options)

    line, *_ = inspect.cleandoc(rule.__doc__ or "").splitlines()
    command.__doc__ = line
    command.__annotations__ = dict(types)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(annotation=types[each.name]) for each in parameters]
    )
    return command
