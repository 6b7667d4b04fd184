"""Ends a process together with its parent."""

from __future__ import annotations

import os
import threading
import time

_LOOK_SECONDS = 0.5
"""Seconds after which a process looks again whether its parent is there."""


def end_with(process: int) -> None:
    """End this process once the one of this number, which started it, is gone.

    It looks, for no word of that comes on every platform: Linux's PR_SET_PDEATHSIG comes as soon as
    the thread ends that started the process, and the end of a pipe never comes if a third process
    has inherited it.

    Args:
        process: Number of the process. If it is gone already, this one ends now.
    """

    def look() -> None:
        while os.getppid() == process:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # nobody takes results, and whatever else this process does may block

    threading.Thread(target=look, name="end with the parent", daemon=True).start()
