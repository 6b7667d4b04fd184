"""What a user says about a recording, and the class of environment that it stands for.

A poll shows many choices, so that a user finds what fits; they are generalised into few
equivalence classes, so that users who mean the same place agree (thesis 7.1, Figure 7.1).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.environments import DEFAULT_ENVIRONMENTS
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry, nearest

LARGEST_NAME = 64
"""Characters of a class or choice, as in a phase's parameters."""

UNLABELLED = -1
"""The index of a recording that nobody labelled, or whose class a phase does not ask for."""


class UnknownLabelError(InvalidInputError):
    """A choice that no poll offers; the message lists those it does, the nearest first."""


@dataclass(frozen=True)
class LabelHierarchy:
    """Equivalence classes and the choices that are generalised into each.

    A class is its own choice as well, for a user who cannot be more specific.

    Attributes:
        groups: class → its choices, in the order in which a poll shows them.

    Raises:
        InvalidInputError: there is no class, a name is empty, padded, not printable or longer than
            64 characters, or a choice belongs to two classes.
    """

    groups: Mapping[str, tuple[str, ...]]
    _class_of: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        groups = {name: tuple(choices) for name, choices in self.groups.items()}
        if not groups:
            raise InvalidInputError("a hierarchy without classes: at least one is needed")
        class_of = {_checked_name(name): name for name in groups}
        for name, choices in groups.items():
            for choice in choices:
                if class_of.setdefault(_checked_name(choice), name) != name:
                    raise InvalidInputError(
                        f"{choice!r} stands for {class_of[choice]!r} and for {name!r}; a choice "
                        "belongs to one class"
                    )
        object.__setattr__(self, "groups", MappingProxyType(groups))
        object.__setattr__(self, "_class_of", class_of)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled, and simulations send hierarchies to other processes.
        return type(self), (dict(self.groups),)

    @classmethod
    def flat(cls, labels: Iterable[str]) -> LabelHierarchy:
        """A hierarchy in which every label is its own class and only choice.

        Raises:
            InvalidInputError: as for any hierarchy, or a label repeats.
        """
        labels = tuple(labels)
        if len(set(labels)) != len(labels):
            raise InvalidInputError("labels repeat: every label is named once")
        return cls({label: (label,) for label in labels})

    @property
    def classes(self) -> tuple[str, ...]:
        """The equivalence classes: the labels L of a learning phase."""
        return tuple(self.groups)

    @property
    def choices(self) -> tuple[str, ...]:
        """What a poll offers, group by group."""
        return tuple(choice for choices in self.groups.values() for choice in choices)

    def class_of(self, choice: str) -> str:
        """The class that a choice stands for; a class stands for itself.

        Raises:
            UnknownLabelError: says which choices are accepted.
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


@dataclass(frozen=True)
class Poll:
    """What an app asks its user after a recording.

    Attributes:
        question: the text above the choices.
        groups: heading → choices, in the order to show them; the answer is one of the choices or
            a heading, and goes to `Store.label` as it is.
    """

    question: str
    groups: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, hierarchy: LabelHierarchy, question: str = "Where have you been?") -> Poll:
        """The poll of a hierarchy: its classes are the headings."""
        return cls(question, hierarchy.groups)


def default_hierarchy() -> LabelHierarchy:
    """The environments of everyday life that phones and phases agree on."""
    return LabelHierarchy(DEFAULT_ENVIRONMENTS)


def label_counts(
    points: NDArray[np.floating],
    labels: NDArray[np.integer],
    centroids: NDArray[np.floating],
    label_total: int,
    geometry: Geometry,
) -> NDArray[np.int64]:
    """How many recordings of each label lie closest to each centroid (Algorithm 1, step 11).

    Args:
        points: floats (recordings, dimensions).
        labels: integers (recordings,), from 0 to `label_total` - 1, or -1 for a recording without
            a label, which is not counted.
        centroids: floats (centroids, dimensions), at least one.
        label_total: the number of labels.
        geometry: how distances are taken.

    Returns:
        int64 (centroids, labels).

    Raises:
        InvalidInputError: the shapes do not fit each other, or a label is out of range.
    """
    if labels.shape != points.shape[:1] or labels.dtype.kind not in "iu":
        raise InvalidInputError(
            f"labels of shape {labels.shape} and type {labels.dtype} for points of shape "
            f"{points.shape}: one integer for each point is needed"
        )
    if label_total < 1 or (labels < UNLABELLED).any() or (labels >= label_total).any():
        raise InvalidInputError(
            f"labels must lie between 0 and {label_total - 1}, or be {UNLABELLED} where there is "
            "none"
        )
    labelled = labels >= 0
    cells = nearest(points[labelled], centroids, geometry) * label_total + labels[labelled]
    counts = np.bincount(cells, minlength=len(centroids) * label_total)
    return counts.astype(np.int64).reshape(len(centroids), label_total)


def _checked_name(name: str) -> str:
    if not (0 < len(name) <= LARGEST_NAME and name.isprintable() and name == name.strip()):
        raise InvalidInputError(
            f"{name!r} is not the name of a class or choice: 1 to {LARGEST_NAME} printable "
            "characters without spaces around them are accepted"
        )
    return name
