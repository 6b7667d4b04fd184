"""The phone's side of a sum by two operators: one report, and nothing to keep."""

from __future__ import annotations

import os
from typing import Self

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from earshot_protocol.errors import UnexpectedMessageError, WrongStateError
from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.two_operators.messages import ID_BYTES, SEED_BYTES, PhoneReport, SendReport
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.rounds import DONE, REPORT
from earshot_protocol.two_operators.shares import helper_shares, seal


class ReportingParticipant:
    """A `Participant` that splits its input between two operators.

    Args:
        task: Task that opens the sum, with an offer that the phone has checked.
        values: Input of the sum's shape, whole numbers within the bound.
        told: Description of the sum; the offer has its digest, which the phone has checked.

    Raises:
        UnexpectedMessageError: The task has no offer.
    """

    def __init__(self, task: SendReport, values: npt.ArrayLike, told: bytes = b"") -> None:
        if task.offer is None:
            raise UnexpectedMessageError("a sum by two operators without an offer")
        self._offer = task.offer.offer
        self._words = encoding.encode(values, self._offer.parameters)
        self._round = REPORT

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """Always refuse: after its report, a phone has no state to restore.

        Raises:
            WrongStateError: Always.
        """
        raise WrongStateError("a phone sends one message in a sum by two operators")

    def save(self) -> bytes:
        """Always refuse: there is no state to save.

        Raises:
            WrongStateError: Always.
        """
        raise WrongStateError("a phone keeps no secrets of a sum by two operators")

    @property
    def round(self) -> str:
        """Name of the round whose task it answers next."""
        return self._round

    @staticmethod
    def arithmetic() -> Arithmetic:
        """Return the engine that computes proofs; only simulations have another one."""
        return LimbArithmetic()

    @property
    def done(self) -> bool:
        """Whether it has sent its report."""
        return self._round == DONE

    def answer(self, task: SumTask) -> PhoneReport:
        """Return the report; its secrets come from the operating system and end with this call.

        Raises:
            UnexpectedMessageError: The task is not that which opened the sum.
            InvalidInputError: The input must be proved, and is not valid.
            MissingExtraError: It must be proved, and the extra `proofs` is not installed.
        """
        offer = self._offer
        if self.done or not isinstance(task, SendReport) or task.sum_id != offer.sum_id:
            raise UnexpectedMessageError("a report was sent already, or was not requested")
        seed, report_id, public = os.urandom(SEED_BYTES), os.urandom(ID_BYTES), b""
        if offer.parameters.proof is None:
            rest = self._words - helper_shares((seed,), offer.parameters)
            share = encoding.pack(rest, offer.parameters.modulus_bits)
        else:
            vector = encoding.decode(self._words, offer.parameters).reshape(-1).astype(np.int64)
            public, share, seed = proof_of(offer, self.arithmetic()).shard(vector, report_id)
        key = X25519PublicKey.from_public_bytes(offer.key)
        self._round = DONE
        return PhoneReport(
            sum_id=offer.sum_id,
            sender=task.index,
            report_id=report_id,
            sealed=seal(seed, key, offer.digest(), report_id, public),
            share=share,
            public=public,
        )
