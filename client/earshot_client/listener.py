"""Everything that a phone does without a server: it hears, keeps, forgets and names scenes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Self

import numpy as np
import numpy.typing as npt

from earshot_client import features
from earshot_client.contact import CRITICAL_MINUTES, Contact
from earshot_client.encoder import Encoder, rate_of
from earshot_client.expiry import forget_expired
from earshot_client.labels import LabelHierarchy, Poll
from earshot_client.phases.memory import Memory
from earshot_client.store.interface import DamagedStoreError, LostLedgerError, Recording, Store
from earshot_client.voters import Voter
from earshot_protocol.errors import InvalidInputError, WrongStateError
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.privacy.ledger import DamagedLedgerError, Ledger
from earshot_protocol.randomness import RandomBytes

Sound = tuple[npt.NDArray[np.generic], int]
"""Samples and their rate, as `Listener.hear` takes them."""


class Listener:
    """A phone that hears, keeps embeddings and names scenes; `Phone` also takes part in phases.

    Args:
        store: Store that keeps everything; closed with the phone.
        encoder: Encoder from sound to embeddings.
        hierarchy: Poll choices and their equivalence classes; by default those of the newest phase,
            and before the first those of everyday life.
        random: Source of noise.
        clock: Clock of the seconds since 1970; replaced in simulations and tests.
        keep_days: Days after which recordings are forgotten; None keeps them until they are
            forgotten explicitly.
        voter: The app's model that labels samples; with None, the labelled recordings do.

    Raises:
        InvalidInputError: `keep_days` is less than a day.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        hierarchy: LabelHierarchy | None,
        random: RandomBytes,
        *,
        clock: Callable[[], float] = time.time,
        keep_days: int | None = None,
        voter: Voter | None = None,
    ) -> None:
        if keep_days is not None and keep_days < 1:
            raise InvalidInputError(f"keep_days={keep_days}: must be at least one day")
        self._store = store
        self._encoder = encoder
        self._clock = clock
        self._keep_days = keep_days
        self._expired_on: date | None = None
        self._memory = Memory(store, encoder, hierarchy, random, voter)
        self.expire()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def hear(self, samples: npt.NDArray[np.generic], rate: int) -> int:
        """Keep the embedding of one second of sound, and the day; the samples are not kept.

        Args:
            samples: Samples (n,) or (n, channels), floats in [-1, 1] or integers, at least one
                second.
            rate: Samples per second.

        Returns:
            The recording's number.

        Raises:
            InvalidInputError: The samples have an invalid shape or type, or a rate that is invalid
                or below the encoder's.
            UnusableRecordingError: The recording is too short, silent, clipped or not finite.
        """
        return self._keep(samples, rate, self._today())

    def contact(
        self, contact: Contact, listen: Callable[[], Sound], *, least: float = CRITICAL_MINUTES
    ) -> int | None:
        """Hear a second after a critical contact with consent; otherwise do nothing.

        Args:
            contact: Contact, as far as the app knows it.
            listen: Function that records a second and returns samples and rate, as `hear` takes
                them; it is called at most once, and not at all unless the contact is critical and
                the user consents.
            least: Least weighted minutes of a critical contact.

        Returns:
            The recording's number; None if nothing was heard.

        Raises:
            UnusableRecordingError: The recording is too short, silent, clipped or not finite.
        """
        if not contact.lets_listen(least):
            return None
        samples, rate = listen()
        return self._keep(samples, rate, min(contact.day, self._today()))

    def label(self, recording: int, choice: str) -> None:
        """Attach the answer of a poll to a recording.

        Raises:
            UnknownLabelError: The choice is not in the hierarchy; the message says which are.
            InvalidInputError: There is no such recording.
        """
        self._memory.check_choice(choice)
        self._store.label(recording, choice)

    @property
    def hierarchy(self) -> LabelHierarchy:
        """Choices that `label` accepts, and their classes."""
        return self._memory.hierarchy

    @property
    def poll(self) -> Poll:
        """Poll for the user after a recording: the choices of `hierarchy`."""
        return Poll.of(self.hierarchy)

    def recordings(self) -> tuple[Recording, ...]:
        """Return the recordings kept, oldest first: number, day, choice, whether counted."""
        self.expire()
        return self._store.descriptions()

    def forget(self, recording: int) -> None:
        """Erase a recording and its choice; they are overwritten in the file before this returns.

        What has left the phone cannot be recalled, and answers in a phase that has begun may still
        count the recording.

        Raises:
            InvalidInputError: There is no such recording.
        """
        self._store.forget(recording)

    def forget_all(self) -> None:
        """Erase every recording and its choice, as `forget` does; the ledger stays."""
        self._store.forget_all()

    def scene(self, samples: npt.NDArray[np.generic], rate: int) -> str | None:
        """Name the scene of one second of sound by the nearest published prototype.

        In results of the local route, it is the nearest centroid of sound that has the name.
        Samples that a labelling phase has named since count as well.

        Returns:
            The equivalence class; None if the scene is unknown: all prototypes are farther than the
            result's radius, or the nearest does not stand clear of the noise.

        Raises:
            UnusableRecordingError: The recording is too short, silent, clipped or not finite.
            WrongStateError: No result of a phase has arrived yet.
        """
        places = self._memory.places
        if places is None:
            raise WrongStateError("no published centroids yet: take part in a phase first")
        points = self._encoder.project(self._embed(samples, rate), places.points.shape[1])
        return places.nearest(points)[0]

    @property
    def result(self) -> NamedCentroids | None:
        """Newest published result, if one has arrived."""
        return self._memory.result

    @property
    def labelled(self) -> NamedCentroids | None:
        """Newest samples that a labelling phase has labelled since that result."""
        return self._memory.labelled

    @property
    def ledger(self) -> Ledger:
        """Ledger of every release that this phone ever made.

        Raises:
            LostLedgerError: The ledger is damaged.
        """
        try:
            return Ledger(self._store.ledger())
        except (DamagedLedgerError, DamagedStoreError) as error:
            raise LostLedgerError(str(error)) from error

    def _keep(self, samples: npt.NDArray[np.generic], rate: int, day: date) -> int:
        self.expire()
        return self._store.add(self._embed(samples, rate)[0], day)

    def _embed(self, samples: npt.NDArray[np.generic], rate: int) -> npt.NDArray[np.float32]:
        second = features.one_second(samples, rate, rate_of(self._encoder))
        return self._encoder.embed(second[None])

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock(), UTC).date()

    def expire(self) -> None:
        """Forget expired recordings."""
        if self._keep_days is None:
            return
        today = self._today()
        if today != self._expired_on:
            forget_expired(self._store, self._keep_days, today)
            self._expired_on = today
