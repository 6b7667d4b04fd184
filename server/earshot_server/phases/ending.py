"""Ending of a phase that cannot continue."""

from __future__ import annotations

from earshot_protocol.messages import Failed
from earshot_protocol.phases.plan import FAILED
from earshot_protocol.wire import encode
from earshot_server.store.interface import PhaseStore, PresentStep


def end_unread(store: PhaseStore, phase: bytes, reason: str) -> bool:
    """End a phase as failed without reading its snapshot, which may be damaged.

    The snapshot is deleted, as it may contain this operator's noise of a sum.

    Args:
        store: Store of the phase.
        phase: Identifier of the phase.
        reason: Reason that is sent to phones.

    Returns:
        Whether the phase was still under way.

    Raises:
        WrongStateError: Another process has closed the step in the meantime.
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
