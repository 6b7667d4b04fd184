"""Environments where people are: classes, and the choices of a poll that belong to each.

A poll shows many choices, so that a user finds one that fits; they are generalised into few
equivalence classes, so that users who mean the same place agree (thesis 7.1, Figure 7.1). Phone and
server agree on a hierarchy by its digest.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from earshot_protocol.errors import InvalidInputError

LARGEST_NAME = 64
"""Most characters in the name of a class or choice."""
LARGEST_CHOICES = 4096
"""Most choices of all classes together: a megabyte at most."""

DEFAULT_ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    "public transport": (
        "train",
        "underground",
        "tram",
        "bus",
        "train station",
        "bus stop",
        "airport",
        "ferry",
    ),
    "car": ("car", "taxi", "car park"),
    "street": ("traffic", "siren", "pedestrian street", "crossing", "construction site"),
    "nature": ("park", "forest", "birds", "rain", "wind", "waves", "beach", "garden"),
    "gastronomy": ("café", "restaurant", "bar", "canteen", "beer garden"),
    "home": ("living room", "kitchen", "stairwell", "visiting friends"),
    "office": ("desk", "open-plan office", "meeting room", "classroom", "library"),
    "shop": ("supermarket", "shopping centre", "bakery", "market", "hairdresser"),
    "event": ("crowd", "concert", "cinema", "stadium", "party", "worship"),
    "workshop": ("machine hum", "factory", "garage", "laboratory", "warehouse"),
    "sport": ("gym", "swimming pool", "sports hall", "playing field"),
}
"""Eleven environments of everyday life, after Figure 7.1 of the thesis: class → the choices that a
poll offers for it, in its order."""


class UnknownLabelError(InvalidInputError):
    """A choice that no poll offers; the message lists the accepted ones, the nearest first."""


@dataclass(frozen=True)
class LabelHierarchy:
    """Equivalence classes and the choices that are generalised into each.

    A class is its own choice as well, for a user who cannot be more specific.

    Attributes:
        groups: Class → its choices, in the order in which a poll shows them.

    Raises:
        InvalidInputError: There is no class, a name is empty, padded, not printable or longer than
            64 characters, a choice belongs to two classes, or there are more than 4,096 choices.
    """

    groups: Mapping[str, tuple[str, ...]]
    _class_of: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        groups = {name: tuple(choices) for name, choices in self.groups.items()}
        if not groups:
            raise InvalidInputError("a hierarchy without classes: at least one is needed")
        if sum(map(len, groups.values())) > LARGEST_CHOICES:
            raise InvalidInputError(f"a hierarchy of more than {LARGEST_CHOICES} choices")
        class_of = {_checked_name(name): name for name in groups}
        for name, choices in groups.items():
            for choice in choices:
                if class_of.setdefault(_checked_name(choice), name) != name:
                    raise InvalidInputError(
                        f"{choice!r} belongs to {class_of[choice]!r} and to {name!r}; a choice "
                        "belongs to one class"
                    )
        object.__setattr__(self, "groups", MappingProxyType(groups))
        object.__setattr__(self, "_class_of", class_of)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled, and simulations send hierarchies to other processes.
        return type(self), (dict(self.groups),)

    @classmethod
    def flat(cls, labels: Iterable[str]) -> LabelHierarchy:
        """Return a hierarchy in which every label is its own class and only choice.

        Raises:
            InvalidInputError: A label repeats, or the hierarchy is invalid.
        """
        labels = tuple(labels)
        if len(set(labels)) != len(labels):
            raise InvalidInputError("labels repeat: every label is named once")
        return cls({label: (label,) for label in labels})

    @property
    def classes(self) -> tuple[str, ...]:
        """Equivalence classes: the labels L of a learning phase."""
        return tuple(self.groups)

    @property
    def choices(self) -> tuple[str, ...]:
        """Choices that a poll offers, group by group."""
        return tuple(choice for choices in self.groups.values() for choice in choices)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical encoding, 32 bytes; it covers classes, choices and their order.

        The encoding is MessagePack with the shortest headers: an array of pairs, each a class and
        the array of its choices.
        """
        return hashlib.sha256(msgspec.msgpack.encode(tuple(self.groups.items()))).digest()

    def class_of(self, choice: str) -> str:
        """Return the class of a choice; a class is a choice of its own.

        Raises:
            UnknownLabelError: The choice is unknown; the message says which are accepted.
        """
        try:
            return self._class_of[choice]
        except KeyError:
            raise UnknownLabelError(
                f"{choice!r} is not a choice; accepted: {', '.join(self._nearest_first(choice))}"
            ) from None

    def _nearest_first(self, choice: str) -> list[str]:
        accepted = list(dict.fromkeys((*self.choices, *self.classes)))
        lower = {name.casefold(): name for name in accepted}
        close = [lower[name] for name in difflib.get_close_matches(choice.casefold(), lower)]
        return list(dict.fromkeys((*close, *accepted)))


def default_hierarchy() -> LabelHierarchy:
    """Return the environments of everyday life that phones and phases agree on."""
    return LabelHierarchy(DEFAULT_ENVIRONMENTS)


def _checked_name(name: str) -> str:
    if not (0 < len(name) <= LARGEST_NAME and name.isprintable() and name == name.strip()):
        raise InvalidInputError(
            f"{name!r} is not the name of a class or choice: 1 to {LARGEST_NAME} printable "
            "characters without spaces around them are accepted"
        )
    return name
