"""Phones in Python beside the pages of a sitting: they hear, label and take part without a browser.

A page costs seconds of CPU and a hundred megabytes, a phone in Python a tenth of both, and the
server cannot tell them apart. So a few pages can sit in a crowd that is large enough for names.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from earshot_client.client import Client
from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.interface import Store
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.enrolment import signing_key
from earshot_client.transport.http import HttpTransport
from earshot_models.soundscapes import synthesize
from earshot_protocol.progress import Progress

RECORDINGS = 3
"""Seconds that a phone hears."""
RATE = 48_000
"""Samples per second of most phones' microphones."""
_AT_ONCE = 4
_PAUSE = 0.5
"""Seconds between visits of a phone."""


def joined(
    address: str,
    code: str,
    policy: Policy,
    count: int,
    places: Sequence[str],
    seed: int,
    progress: Progress,
) -> list[Client]:
    """Let new phones hear and label seconds of one place each, in turn, and join a phase.

    Args:
        address: URL of the server.
        code: Code of an invitation for all of them.
        policy: Limits of each phone.
        count: Number of phones.
        places: Names of scenes, which are the labels.
        seed: Seed of the sound.
        progress: Callback that receives the number of phones that have visited the server.
    """

    def line(store: Store) -> HttpTransport:
        return HttpTransport(address, signing_key(store))

    clients = []
    for number in range(count):
        place, generator = places[number % len(places)], np.random.default_rng([seed, 1, number])
        store = MemoryStore()
        phone = Phone(store, default_encoder(), policy)
        for clip in synthesize(place, RECORDINGS, generator, RATE):
            phone.label(phone.hear(clip, RATE), place)
        clients.append(Client(phone, store, line, invitation=code))
        clients[-1].visit()
        progress("phones", number + 1, count)
    return clients


@contextmanager
def taking_part(clients: Sequence[Client]) -> Iterator[None]:
    """Let phones visit the server until each has an ending or the block ends; then close them."""
    over = threading.Event()

    def visit() -> None:
        waiting = clients
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            while waiting and not over.wait(_PAUSE):
                list(threads.map(Client.visit, waiting))
                waiting = [client for client in waiting if client.ending is None]
        for client in clients:
            client.close()

    with ThreadPoolExecutor(1) as thread:
        visits = thread.submit(visit)
        try:
            yield
        finally:
            over.set()
        visits.result()
