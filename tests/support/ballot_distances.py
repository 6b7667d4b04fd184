"""Distances of ballots by trying every pair of them."""

from __future__ import annotations

import numpy as np
import pytest

from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import Ballot

REPLACED = (Unit.RECORDING, Unit.REPLACED_PHONE)


def check_distances(ballot: Ballot, answers: np.ndarray) -> None:
    """Compare what a ballot says of its norms and entries with all ballots that can be cast."""
    cast = ballot.cast(answers).reshape(len(answers), ballot.length)
    assert cast.dtype == np.int64
    apart = (cast[:, None] - cast[None]).reshape(-1, ballot.length)
    assert ballot.l1(Unit.PHONE) == pytest.approx(np.abs(cast).sum(axis=1).max())
    assert ballot.l2(Unit.PHONE) == pytest.approx(np.linalg.norm(cast, axis=1).max())
    for unit in REPLACED:
        assert ballot.l1(unit) == pytest.approx(np.abs(apart).sum(axis=1).max())
        assert ballot.l2(unit) == pytest.approx(np.linalg.norm(apart, axis=1).max())
    assert cast.min() >= 0
    assert cast.max() == ballot.largest_entry
