"""Suppression of a traceback that joblib's processes write after a harmless interruption."""

from __future__ import annotations

import threading
import traceback

_HANDS_OUT = "add_call_item_to_queue"


def let_cancelled_jobs_go() -> None:
    """Keep loky's own thread from writing a traceback about jobs that an interruption cancelled.

    After Ctrl-C joblib cancels all jobs and forgets them, while that thread may be about to hand
    one out: it then ends with a KeyError, in the method named above. Whoever waits for the job has
    been told already, so no information is lost. All other errors of threads are shown as before.
    """
    if getattr(threading.excepthook, "lets_cancelled_jobs_go", False):
        return
    shown = threading.excepthook

    def show(failed: threading.ExceptHookArgs) -> None:
        frames = traceback.extract_tb(failed.exc_traceback)
        if failed.exc_type is KeyError and frames and frames[-1].name == _HANDS_OUT:
            return
        shown(failed)

    show.lets_cancelled_jobs_go = True  # type: ignore[attr-defined]
    threading.excepthook = show
