"""The app's single entry point: a phone, its server, and the visits between them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from earshot_client.expiry import KEEP_DAYS
from earshot_client.visits.outcome import LONGEST_PAUSE, Event, Visit
from earshot_protocol.errors import RemoteError
from earshot_protocol.one_process import OneProcess

# An app imports this file when it starts. numpy, cryptography, msgspec, ssl and sqlite3 come with
# the first client, so each method imports what it uses.
if TYPE_CHECKING:
    import os
    import ssl

    from earshot_client.encoder import Encoder
    from earshot_client.labels import LabelHierarchy
    from earshot_client.phone import Phone
    from earshot_client.policy import Policy
    from earshot_client.store.interface import Store
    from earshot_client.transport.http import HttpTransport
    from earshot_client.visits.conditions import Condition
    from earshot_client.voters import Voter

MOST_STEPS = 64
"""Most steps of one visit, twice as many as any phase has."""
SECONDS_AFTER_TOO_MANY = 60.0
SECONDS_FOR_ANOTHER_VISIT = 60.0
SECONDS_AFTER_ENROLMENT_FAILED = 30.0

_REFUSAL = "refusal"
"""Name of the stored value with the reason why this phone refused the server's last request."""

Line: TypeAlias = "Callable[[Store], HttpTransport]"
"""Factory of the transport to the server, given the phone's store, which holds its identity."""


class Client(OneProcess):
    """A phone that is enrolled with one server, and visits it when its condition allows.

    Any thread of a process may call it, and one client is enough for all: the store protects the
    phone's data, and of two simultaneous visits the second returns immediately. A process that is
    killed at any point continues where it was. In a process forked from this one, every call raises
    OtherProcessError: open a client after the fork.

    Args:
        phone: Phone that hears, labels, lists and forgets, and decides what is answered.
        store: Store of the phone.
        line: Function that makes the transport.
        invitation: Code with which a new phone enrols at its first visit; without effect later.
        condition: Condition under which the phone may visit; by default at any time.
        longest_pause: Longest pause between visits, in seconds, except where the condition or a
            server that is too busy asks for a longer one.

    Attributes:
        phone: Phone, as given.
    """

    def __init__(
        self,
        phone: Phone,
        store: Store,
        line: Line,
        *,
        invitation: str | None = None,
        condition: Condition | None = None,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        from earshot_client.visits.endings import Endings

        self.phone = phone
        self._store = store
        self._invitation = invitation
        self._condition = condition
        self._endings = Endings(store)
        self._line, self._longest_pause = line, longest_pause
        self._connect()
        self._turn = threading.RLock()
        self._closing = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        key: bytes,
        server: str,
        invitation: str | None = None,
        condition: Condition | None = None,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        policy: Policy | None = None,
        hierarchy: LabelHierarchy | None = None,
        keep_days: int | None = KEEP_DAYS,
        voter: Voter | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Open or create the phone in an encrypted file; nothing is sent yet.

        Args:
            path: Path of the file.
            key: 32 secret bytes, from the platform's key store.
            server: URL of the server, https.
            invitation: Code with which a new phone enrols at its first visit.
            condition: Condition under which the phone may visit; by default at any time.
            encoder: Encoder from sound to embeddings, the name of a shipped encoder such as
                "contrast-3", or the path of an encoder file; the default encoder if omitted. If the
                encoder has changed, the phone forgets its recordings.
            policy: Limits of what this phone agrees to.
            hierarchy: Poll choices and their equivalence classes; by default those of the newest
                phase, and before the first those of everyday life.
            keep_days: Days after which recordings are forgotten; None keeps them.
            voter: Model that votes in labelling phases; by default the labelled recordings do.
            tls: Settings by which the server is authenticated; by default the certificates that the
                system trusts.

        Raises:
            InvalidInputError: The server's URL, the key or the number of days is invalid.
            WrongKeyError: The file was made under another key.
            DamagedStoreError: The file is damaged, or not a phone's.
            NewerStoreError: A newer version of this software wrote the file.
            StoreUnavailableError: Another process has the file open, or the disk is full.
            DamagedEncoderError: The encoder file is damaged.
            MissingRuntimeError: An encoder file needs LiteRT, which is not installed.
        """
        from earshot_client.encoder import open_encoder
        from earshot_client.phone import Phone
        from earshot_client.store.encrypted import EncryptedStore
        from earshot_client.transport.enrolment import signing_key
        from earshot_client.transport.http import HttpTransport
        from earshot_client.visits.endings import Endings

        running = open_encoder(encoder)
        store = EncryptedStore(path, key)
        try:
            phone = Phone(
                store, running, policy, hierarchy=hierarchy, keep_days=keep_days, voter=voter
            )
            return cls(
                phone,
                store,
                lambda kept: HttpTransport(
                    server, signing_key(kept), known=Endings(kept).known, tls=tls
                ),
                invitation=invitation,
                condition=condition,
            )
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close the file and the connection, after a step that is under way."""
        self._closing = True
        with self._in_turn():
            self._transport.close()
            self.phone.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def enrolled(self) -> bool:
        """Whether the server has given this phone a name."""
        from earshot_client.transport.enrolment import is_enrolled

        return is_enrolled(self._store)

    def enrol(self) -> str:
        """Enrol with the invitation, unless the phone is enrolled; `visit` does this as well.

        Returns:
            The name under which the server knows this phone.

        Raises:
            NotEnrolledError: There is no invitation.
            InvitationRefusedError: The server does not admit a phone with it.
            UnavailableError: The server cannot be reached now.
        """
        from earshot_client.transport.enrolment import enrol

        with self._in_turn():
            return enrol(self._store, self._transport, self._invitation)

    def visit(self) -> Visit:
        """Do all tasks that the server has for this phone now, as a background job does.

        Returns:
            The outcome of the last step, and the seconds after which to call again.

        Raises:
            NotEnrolledError: The phone is new, and there is no invitation.
            InvitationRefusedError: The server does not admit a phone with the invitation.
            LocalError: Something is wrong on this phone; trouble with the network or the server is
                in the `Visit`.
        """
        with self._alone() as alone:
            if not alone:
                return Visit(
                    Event.POSTPONED, "another visit is under way", SECONDS_FOR_ANOTHER_VISIT
                )
            for _ in range(MOST_STEPS):
                visit = self.step(datetime.now().astimezone())
                if visit.seconds > 0 or self._closing:
                    return visit
        return Visit(
            Event.TROUBLE, "the server sends more tasks than any phase has", SECONDS_AFTER_TOO_MANY
        )

    def step(self, now: datetime) -> Visit:
        """Do one task and answer it: one step of `visit`, for callers that follow progress.

        Args:
            now: Local time of the phone.

        Raises:
            EarshotError: The same errors as in `visit`.
        """
        with self._in_turn():
            visit = self._enrolment(now) or self._participation.visit(now)
            if visit.event is Event.REFUSED:
                self._store.put(_REFUSAL, visit.detail.encode())
            elif visit.event in (Event.ANSWERED, Event.ENDED):
                self._store.delete(_REFUSAL)
            return visit

    def leave(self) -> None:
        """Un-enrol: the server deletes its data about this phone, and the phone its name and key.

        Recordings, results and the ledger stay on the phone; `enrol` with another invitation makes
        it a new phone to the server.

        Raises:
            NotEnrolledError: No server knows the phone.
            UnavailableError: The server cannot be reached now; nothing has changed here.
        """
        from earshot_client.transport.enrolment import leave

        with self._in_turn():
            leave(self._store, self._transport)
            self.phone.leave_phase()
            self._transport.close()
            self._connect()  # with a new key, in case it enrols again

    @property
    def ending(self) -> dict[str, Any] | None:
        """Newest ending of a phase that has not been shown to the user; `told` marks it as shown.

        Its `type` is that of the message (`result`, `discovered`, `labelled`, `statistics` or
        `failed`), its `phase` is in hexadecimal; the rest is the outcome, or the reason of a
        failure.
        """
        from earshot_client.phases.kinds import described

        ending = self._endings.untold()
        return None if ending is None else described(ending)

    def told(self) -> None:
        """Mark the ending as shown to the user."""
        self._endings.told()

    @property
    def refusal(self) -> str | None:
        """Reason why this phone refused the server's last request; None once it took part again."""
        saved = self._store.get(_REFUSAL)
        return None if saved is None else saved.decode()

    def _connect(self) -> None:
        from earshot_client.visits.participation import Participation

        self._transport = self._line(self._store)
        self._participation = Participation(
            self.phone,
            self._store,
            self._transport,
            condition=self._condition,
            poll=self._longest_pause,
        )

    def _enrolment(self, now: datetime) -> Visit | None:
        """Try to enrol and return the outcome; None if the phone is enrolled."""
        from earshot_client.transport.http import InvitationRefusedError, UnavailableError

        if not self.enrolled and self._invitation is not None and self._condition is not None:
            postponed = self._condition.check(now)
            if postponed is not None:
                return Visit(Event.POSTPONED, postponed.reason, postponed.seconds)
        try:
            self.enrol()
        except InvitationRefusedError:
            raise
        except RemoteError as error:
            least = error.seconds if isinstance(error, UnavailableError) else 0.0
            return Visit(Event.TROUBLE, str(error), max(least, SECONDS_AFTER_ENROLMENT_FAILED))
        return None

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Acquire the lock; a fork may have copied it while another thread held it."""
        self.check_process()
        with self._turn:
            yield

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Try to begin a visit; yield False while another thread is in one."""
        self.check_process()
        alone = self._turn.acquire(blocking=False)
        try:
            yield alone
        finally:
            if alone:
                self._turn.release()
