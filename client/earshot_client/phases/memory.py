"""The view of a phone's memory that kinds of phase use."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.encoder import Encoder
from earshot_client.store.interface import Store
from earshot_client.voters import Voter
from earshot_protocol.environments import LabelHierarchy, UnknownLabelError, default_hierarchy
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import Places, together
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.wire import encode

RESULT = "result"
"""Name of the stored value that holds the newest published result."""
LABELLED = "labelled"
"""Name of the stored value that holds the samples that were labelled since that result."""
HIERARCHY = "hierarchy"
"""Name of the stored value that holds the label hierarchy of the newest phase."""

_Groups = tuple[tuple[str, tuple[str, ...]], ...]
_MOST_NAMED = 12


@dataclass(frozen=True)
class Memory:
    """A phone's state and settings, as phases use them.

    Attributes:
        store: Store that keeps everything.
        encoder: Encoder from sound to embeddings.
        fixed: Hierarchy that the app's polls show; None if they show that of the newest phase.
        random: Source of the noise.
        voter: The app's model that labels samples; with None, the labelled recordings do.
    """

    store: Store
    encoder: Encoder
    fixed: LabelHierarchy | None
    random: RandomBytes
    voter: Voter | None = None

    @property
    def hierarchy(self) -> LabelHierarchy:
        """Choices that a poll offers now: the app's, those of the newest phase, or the default."""
        return self.fixed or self.agreed

    @property
    def agreed(self) -> LabelHierarchy:
        """Classes and choices of the newest phase; before the first, those of polls."""
        saved = self.store.get(HIERARCHY)
        if saved is None:
            return self._usual
        return _hierarchy(saved)

    @property
    def _usual(self) -> LabelHierarchy:
        return self.fixed or default_hierarchy()

    def check_choice(self, choice: str) -> None:
        """Refuse a choice that neither the present polls nor those before the first phase offer.

        An app may always offer the everyday choices, whatever a phase asks for.

        Raises:
            UnknownLabelError: The choice is unknown; the message says what is offered now.
        """
        if _known(self._usual, choice) is None:
            self.hierarchy.class_of(choice)

    def agree_on(self, hierarchy: LabelHierarchy) -> None:
        """Keep the hierarchy of a phase that this phone joins."""
        self.store.put(HIERARCHY, msgspec.msgpack.encode(tuple(hierarchy.groups.items())))

    @property
    def result(self) -> NamedCentroids | None:
        """Newest published result, if one has arrived."""
        return self._published(RESULT)

    @property
    def labelled(self) -> NamedCentroids | None:
        """Newest samples that were labelled since that result."""
        return self._published(LABELLED)

    def _published(self, name: str) -> NamedCentroids | None:
        """Return the result of that name; None if there is none."""
        saved = self.store.get(name)
        result = None if saved is None else decode_task(saved)
        return result if isinstance(result, NamedCentroids) else None

    def keep_result(self, result: NamedCentroids) -> None:
        """Keep the newest published result; samples labelled before belong to an older one."""
        self.store.put(RESULT, encode(result))
        self.store.delete(LABELLED)

    def keep_labelled(self, labelled: NamedCentroids) -> None:
        """Keep the newest samples that were labelled."""
        self.store.put(LABELLED, encode(labelled))

    @property
    def places(self) -> Places | None:
        """Places that name scenes; None before the first result."""
        return together(self.result, self.labelled)

    def points(self, dimensions: int) -> tuple[npt.NDArray[np.float32], tuple[str | None, ...]]:
        """Return the projected recordings, float32 (recordings, dimensions), and their choices."""
        embeddings, choices = self.store.recordings()
        if not len(embeddings):
            return np.empty((0, dimensions), dtype=np.float32), ()
        return self.encoder.project(embeddings, dimensions), choices

    def classes_of(self, choices: Iterable[str | None]) -> list[str | None]:
        """Return each choice's class in the newest phase; None if it has none.

        A choice unknown to the phase belongs to the phase's class with the name of its class in the
        phone's own polls. No choice may stop the phone from answering, since its silence would
        reveal that one recording.
        """
        agreed, usual, choices = self.agreed, self._usual, tuple(choices)
        classes = {
            choice: _known(agreed, choice) or _known(agreed, _known(usual, choice))
            for choice in set(choices)
        }
        return [classes[choice] for choice in choices]

    def shortfall(self) -> str:
        """Describe missing data for the newest phase, for the user; empty if there is none."""
        choices = self.store.recordings()[1]
        if not choices:
            return "takes part without recordings"
        chosen = {choice for choice in choices if choice is not None}
        if not chosen:
            return "takes part without labels: none of its recordings has one"
        if not any(self.classes_of(chosen)):
            asked = self.agreed.classes
            more = ", …" if len(asked) > _MOST_NAMED else ""
            return (
                "takes part without labels: the phase knows none of this phone's; it asks for "
                f"{', '.join(asked[:_MOST_NAMED])}{more}"
            )
        return ""


# Cached, since all phones of a simulation share one hierarchy.
@functools.lru_cache(maxsize=4)
def _hierarchy(saved: bytes) -> LabelHierarchy:
    return LabelHierarchy(dict(msgspec.msgpack.decode(saved, type=_Groups)))


def _known(hierarchy: LabelHierarchy, choice: str | None) -> str | None:
    try:
        return None if choice is None else hierarchy.class_of(choice)
    except UnknownLabelError:
        return None
