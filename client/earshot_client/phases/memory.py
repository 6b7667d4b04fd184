"""What a phone knows, as the kinds of phase read it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.encoder import Encoder
from earshot_client.labels import LabelHierarchy, UnknownLabelError
from earshot_client.store.interface import Store
from earshot_protocol.phases.learning import Result
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.wire import encode

RESULT = "result"
"""Name of the stored value that holds the newest published result."""


@dataclass(frozen=True)
class Memory:
    """What a phone knows.

    Attributes:
        store: keeps everything.
        encoder: sound to embeddings.
        hierarchy: poll choices and their equivalence classes.
        random: source of the noise.
    """

    store: Store
    encoder: Encoder
    hierarchy: LabelHierarchy
    random: RandomBytes

    @property
    def result(self) -> Result | None:
        """The newest published result, if one has arrived."""
        saved = self.store.get(RESULT)
        return None if saved is None else msgspec.msgpack.decode(saved, type=Result)

    def keep_result(self, result: Result) -> None:
        """Keep the newest published result."""
        self.store.put(RESULT, encode(result))

    def points(self, dimensions: int) -> tuple[npt.NDArray[np.float32], tuple[str | None, ...]]:
        """The projected recordings, float32 (recordings, dimensions), and their choices."""
        embeddings, choices = self.store.recordings()
        if not len(embeddings):
            return np.empty((0, dimensions), dtype=np.float32), ()
        return self.encoder.project(embeddings, dimensions), choices

    def class_of(self, choice: str | None) -> str | None:
        """The class of a choice; None without one, or if polls offered it only once.

        If such a choice stopped the phone from answering, its silence would tell of that one
        recording.
        """
        try:
            return None if choice is None else self.hierarchy.class_of(choice)
        except UnknownLabelError:
            return None
