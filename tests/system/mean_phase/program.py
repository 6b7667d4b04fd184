"""Adds the kind to the three lists of kinds, and runs it: simulated, over HTTP, on the dashboard.

A process of its own, because messages are derived from the protocol's list when they are imported.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

from earshot_protocol.phases import kinds as protocol_kinds

from mean_phase import shared  # isort: skip

protocol_kinds.KINDS += (shared.MEAN,)

import numpy as np  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

import mean_phase.phone  # noqa: E402
import mean_phase.server  # noqa: E402
from earshot_client.phases import kinds as phone_kinds  # noqa: E402
from earshot_client.phone import Phone  # noqa: E402
from earshot_client.store.memory import MemoryStore  # noqa: E402
from earshot_client.transport.http import HttpTransport  # noqa: E402
from earshot_client.visits.participation import Participation  # noqa: E402
from earshot_protocol.api import Invite, StartPhase  # noqa: E402
from earshot_protocol.secure_sum.bell import BELL  # noqa: E402
from earshot_server.api.app import ApiSettings, create_app  # noqa: E402
from earshot_server.credentials import Credentials  # noqa: E402
from earshot_server.discovery.optics import Optics  # noqa: E402
from earshot_server.operator_client import OperatorClient  # noqa: E402
from earshot_server.phases import kinds as server_kinds  # noqa: E402
from earshot_server.processes.driver import Driver  # noqa: E402
from earshot_server.store.database import Database  # noqa: E402
from earshot_simulations.engine.course import Course  # noqa: E402
from earshot_simulations.engine.interface import AGREES, HeardPoints, Scenario  # noqa: E402
from earshot_simulations.engine.local import LocalEngine  # noqa: E402
from earshot_simulations.populations import Blobs  # noqa: E402

phone_kinds.KINDS += (mean_phase.phone.MEAN,)
server_kinds.KINDS[shared.MeanParameters] = mean_phase.server.MeanPhase

LARGEST = 12


def parameters(phones: int, dropout: float, epsilon: float) -> shared.MeanParameters:
    return shared.MeanParameters(
        phones=phones,
        labels=("recordings",),
        dropout=dropout,
        corrupted=0.05,
        largest=LARGEST,
        epsilon=epsilon,
    )


def simulated(epsilon: float) -> dict[str, Any]:
    population = Blobs(200, 10, 3, labelled=0.5, seed=4)
    engine = LocalEngine(Scenario(population, 2, BELL, AGREES), 1)
    course = Course(parameters(200, 0.1, epsilon), engine, BELL, Optics(), seed=1)
    course.run()
    outcome = course.coordinator.result()
    (masked,) = (step for step in course.steps if step.step == "number: masked input")
    gone = {phone for step in course.steps[:3] for phone in step.dropped}
    clipped = [
        min(len(population.recordings(phone).points), LARGEST)
        for phone in range(200)
        if phone not in gone
    ]
    return {
        "steps": [step.step for step in course.steps],
        "answered": masked.answered,
        "expected": sum(clipped),
        "phones": len(clipped),
        "total": outcome.total,
        "released": [[release.step, release.unit] for release in outcome.privacy],
        "notes": course.notes,
    }


def over_http(url: str, folder: Path) -> dict[str, Any]:
    database = Database(url)
    credentials = Credentials.load_or_create(folder)
    server = make_server("127.0.0.1", 0, create_app(ApiSettings(database, credentials)), True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        operator = OperatorClient(address, credentials.operator_token)
        code = operator.invite(Invite(uses=10)).code
        phase = operator.start(StartPhase(parameters=parameters(10, 0.0, 1e5), anyway=True))
        driver = Driver(database, Optics(), 1e9)
        members = []
        for count in range(10, 20):
            points = np.zeros((count, 2), dtype=np.float32)
            line = HttpTransport(address, Ed25519PrivateKey.generate())
            line.enrol(code)
            store = MemoryStore(points)
            phone = Phone(store, HeardPoints("points", 2), AGREES)
            members.append(Participation(phone, store, line))
        for _ in range(8):
            for member in members:
                member.visit(datetime.now())
            driver.turn()
        token = base64.b64encode(f"operator:{credentials.operator_token}".encode()).decode()
        pages = {}
        for path in ("/", f"/phases/{phase}"):
            asked = urllib.request.Request(  # noqa: S310 - our own server
                address + path, headers={"Authorization": f"Basic {token}"}
            )
            pages[path] = urllib.request.urlopen(asked).read().decode()  # noqa: S310
        export = operator.export(phase)
        return {
            "status": export.phase.status,
            "failure": export.phase.failure,
            "total": getattr(export.ending, "total", None),
            "steps": [step.step for step in export.phase.steps],
            "pages": list(pages.values()),
            "ledgers": [member.phone.ledger.export() for member in members],
        }
    finally:
        server.shutdown()
        thread.join()
        database.close()


if __name__ == "__main__":
    figures = {
        "exact": simulated(1e5),
        "noisy": simulated(0.5),
        "http": over_http(sys.argv[1], Path(sys.argv[2])),
    }
    print(json.dumps(figures))
