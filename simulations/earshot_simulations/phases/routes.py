"""Settings of a phase on either route: as options of a command, in Python, and in files."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import Parameters
from earshot_server.discovery.route import Discovery
from earshot_simulations.adversary.attack import Attack, far_place
from earshot_simulations.adversary.success import Success
from earshot_simulations.engine.course import Course
from earshot_simulations.fields import kinds, known
from earshot_simulations.phases.environments import EnvironmentFindings, Route, check_sound, notes
from earshot_simulations.phases.local import LOCAL, LocalSettings
from earshot_simulations.phases.secure_sum import SECURE_SUM, SecureSumSettings
from earshot_simulations.phases.settings import (
    INFINITE,
    NOISELESS,
    ROUTE,
    PhaseSettings,
    PolicyChoice,
    SummationChoice,
)
from earshot_simulations.populations import Blobs, Population

ROUTES: Mapping[Discovery, Route[Any]] = {route.discovery: route for route in (SECURE_SUM, LOCAL)}
"""Routes by name."""
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    name: read for route in ROUTES.values() for name, read in route.texts.items()
}


class Routes(enum.StrEnum):
    """Routes of a simulation."""

    SECURE_SUM = Discovery.SECURE_SUM.value
    LOCAL = Discovery.LOCAL.value
    BOTH = "both"
    """Both routes one after the other, on recordings that the crowd hears once."""

    @property
    def each(self) -> tuple[Discovery, ...]:
        """Routes in the order in which they are run: the thesis's comes first."""
        if self is Routes.BOTH:
            return Discovery.LOCAL, Discovery.SECURE_SUM
        return (Discovery(self),)


@dataclass(frozen=True)
class Settings(LocalSettings, SecureSumSettings, PhaseSettings[EnvironmentFindings]):
    """The settings of one simulated phase, named like the command's options.

    Those that only the other route has are ignored.
    """

    @property
    def route(self) -> Route[Any]:
        """Route of the phase."""
        return ROUTES[self.discovery]

    @override
    def taken(self, name: str, value: Any) -> Any:
        if name in _TEXTS and isinstance(value, str):
            value = _TEXTS[name](value)
        if isinstance(value, Mapping):  # of a table that is open by default
            for route in ROUTES.values():
                usual = route.usual(str(self.data))
                value = {**entries_of(usual[name]), **value} if name in usual else value
        return super().taken(name, value)

    @override
    def check_own(self) -> None:
        check_sound(self)
        if self.adversary.wrong_shares and self.summation is not SummationChoice.REAL:
            raise InvalidParametersError(
                f"adversary.wrong_shares={self.adversary.wrong_shares}: --summation "
                f"{self.summation} has no shares of keys; leave it out, or choose --summation real"
            )
        self.route.check(self)

    @property
    @override
    def agreement(self) -> PolicyChoice:
        return self.route.agreement if self.policy is None else self.policy

    @property
    @override
    def noiseless(self) -> bool:
        return self.epsilon == NOISELESS

    @property
    @override
    def projected(self) -> int:
        return self.route.dimensions if self.dimensions is None else self.dimensions

    @property
    @override
    def blobs(self) -> type[Blobs]:
        return self.route.blobs

    @override
    def any_parameters(self) -> Parameters:
        return self.route.any_parameters(self, self.projected)

    @override
    def parameters(self, population: Population) -> Parameters:
        return self.route.parameters(self, population)

    @override
    def attack(self, population: Population) -> Attack:
        members = self.adversary.members(self.phones, self.seed)
        if not any(members.values()):
            return Attack()
        return Attack(
            members,
            far_place(population, self.seed),
            self.recordings,
            self.route.vote,
            len(population.labels),
        )

    @override
    def configuration(self) -> dict[str, object]:
        open_ones = {"policy": self.agreement, "epsilon": self.epsilon}
        held = asdict(self) | open_ones | self.route.filled(self)
        return {
            name: entries_of(value) if isinstance(value, msgspec.Struct) else value
            for name, value in held.items()
        }

    @override
    def found(self, population: Population, course: Course) -> EnvironmentFindings:
        return self.route.outcome(self, population, course)

    @override
    def notes(
        self, population: Population, success: Success | None, found: EnvironmentFindings
    ) -> Sequence[str]:
        return notes(self, self.route, population.encoder, success, found.name_p_values)


# The command line reads the constructor, where inherited types are words of other modules.
Settings.__init__.__annotations__.update(kinds(Settings))


def of_others(routes: Collection[object]) -> frozenset[str]:
    """Return the names of the settings that none of these routes has."""
    used = [ROUTES[name].options for name in ROUTES if name in routes]
    every = frozenset[str]().union(*(route.options for route in ROUTES.values()))
    return every - frozenset[str]().union(*used)


def routes_of(option: str) -> list[Discovery]:
    """Return the routes that alone have a setting."""
    return [name for name, route in ROUTES.items() if option in route.options]


def in_words(configuration: Mapping[str, object]) -> Iterable[tuple[str, str | None]]:
    """Yield the options that repeat a run, each with its value; a switch has none.

    Those at rest are left out, and those of another route.
    """
    taken = configuration.get(ROUTE)
    others = of_others([taken]) if taken in ROUTES else frozenset[str]()
    for name, value in configuration.items():
        if value is None or value is False or value == {} or name in others:
            continue
        option = "--" + name.replace("_", "-")
        entries = value.items() if isinstance(value, Mapping) else ()
        pairs = [(key.replace("_", "-"), str(entry)) for key, entry in entries]
        if name in _TEXTS:
            yield option, ",".join(map("=".join, pairs))
        elif pairs:
            yield from ((f"{option}.{key}", entry) for key, entry in pairs)
        else:
            yield option, None if value is True else str(value)


def settings_of(entries: Mapping[str, Any]) -> Settings:
    """Return the settings that a file names; others keep their defaults.

    Args:
        entries: Values by the names of `Settings`; `heterogeneity`, `adversary` and `budget` are
            tables of their own, and a budget may also be written as on the command line.

    Raises:
        InvalidParametersError: A name is unknown, or a value has the wrong type or range; the
            message says which and what is accepted. Errors that only `Settings.check` finds are not
            detected.
    """
    held = dict(entries)
    for name in held:
        known(name, kinds(Settings))
    if isinstance(held.get("epsilon"), str) and held["epsilon"] == INFINITE:
        held["epsilon"] = NOISELESS
    settings = Settings(**held)
    settings.check_types()
    return settings


def entries_of(value: object) -> dict[str, Any]:
    """Return a dataclass of settings as plain values for a file; open ones are None."""
    held: dict[str, Any] = msgspec.to_builtins(value)
    return held
