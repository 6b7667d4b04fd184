"""Ending of a phase that cannot continue."""

from __future__ import annotations

from earshot_protocol.messages import Failed
from earshot_protocol.phases.plan import FAILED
from earshot_protocol.wire import encode
from earshot_server.store.interface import PhaseStore, PresentStep


def end_unread(store: PhaseStore, phase: bytes, reason: str) -> bool:
    """End a phase as failed without reading its snapshot, which may be what is wrong.

    Nothing of the snapshot is left: it may hold this operator's noise of a sum.

    Args:
        store: Store that keeps the phase.
        phase: Identifier of the phase.
        reason: Reason that phones are told.

    Returns:
        Whether the phase was still under way.

    Raises:
        WrongStateError: Another process has meanwhile closed the step.
    """
    step = store.present_step(phase)
    if step.over:
        return False
    ending = Failed.because(phase, reason)
    last = PresentStep(
        number=step.number + 1,
        name=FAILED,
        deadline=step.deadline,
        expected=0,
        common=encode(ending),
        over=True,
        wait=step.wait,
    )
    store.replace(phase, b"", last, ())
    return True
