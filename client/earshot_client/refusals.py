"""A phone's report of a refusal to the server: the rule's name, once per phase, and no more."""

from __future__ import annotations

import contextlib

from earshot_client.store.interface import Store
from earshot_client.transport.interface import Transport
from earshot_protocol.api import Refuse
from earshot_protocol.errors import RefusedError, RemoteError
from earshot_protocol.phases.plan import PartTask
from earshot_protocol.wire import Task

_TOLD = "told of refusal"
"""Name of the stored value with the phase that the server was last told to be refused."""


def tell(
    store: Store, transport: Transport, task: Task, refused: RefusedError, present: bytes | None
) -> None:
    """Say by which rule a phone refuses a phase, unless the server knows that it does.

    If the server does not listen, nothing is lost: the phone says it when it refuses again.

    Args:
        store: Store of the phone.
        transport: Line to the server.
        task: Task that was refused.
        refused: Refusal with its rule.
        present: Phase that the phone is in, to which a task belongs that names none.
    """
    phase = task.phase if isinstance(task, PartTask) else present
    if phase is None or phase == store.get(_TOLD):
        return
    with contextlib.suppress(RemoteError):
        transport.refuse(Refuse(phase=phase, rule=refused.rule))
        store.put(_TOLD, phase)
