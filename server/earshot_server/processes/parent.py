"""Ending a process together with its parent."""

from __future__ import annotations

import os
import threading
import time

_LOOK_SECONDS = 0.5
"""Seconds between two checks that the parent is alive."""


def end_with(process: int) -> None:
    """End this process once its parent has died.

    This polls, as no notification is reliable: Linux's PR_SET_PDEATHSIG is sent as soon as the
    thread ends that started the process, and a pipe is not closed if a third process has inherited
    it.

    Args:
        process: Process ID of the parent. If it has already died, this process ends now.
    """

    def look() -> None:
        while os.getppid() == process:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # results are not needed any more, and a clean exit may block

    threading.Thread(target=look, name="end with the parent", daemon=True).start()
