"""A discovery phase leaves environments unnamed; a labelling phase names them, and phones know.

No phone could: each has labelled one of the two places that it hears.
"""

from __future__ import annotations

import numpy as np
from support.discovery_phase import CLASSES, SCENES, START
from support.parameters import discovery_parameters, labelling_parameters

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.commands.phase.samples import unnamed
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, HeardPoints

PHONES = 60


def phone(number: int) -> Phone:
    """Ten recordings of both places, of which those of one have labels."""
    random = np.random.default_rng([91, number])
    scenes = np.arange(10) % 2
    points = SCENES[scenes] + random.normal(0, 0.05, (10, 2))
    labels = [CLASSES[scene] if scene == number % 2 else None for scene in scenes]
    return Phone(
        MemoryStore(points.astype(np.float32), labels),
        HeardPoints("points", 2),
        AGREES,
        hierarchy=LabelHierarchy.flat(CLASSES),
        random=np.random.default_rng([93, number]).bytes,
        summation=IDEAL,
    )


def played(parameters: Parameters, phones: list[Phone]) -> Outcome:
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), parameters, now=0.0, summation=IDEAL
    )
    for now, _ in enumerate(parameters.plan().steps, start=1):
        for number, each in enumerate(phones):
            answer = each.answer(coordinator.task_for(number))
            assert answer is not None
            coordinator.accept(number, answer)
        assert coordinator.advance(float(now))
    for number, each in enumerate(phones):
        assert each.answer(coordinator.task_for(number)) is None
    return coordinator.result()


def named_by(each: Phone) -> list[str | None]:
    """What a phone calls the two places."""
    places = each._memory.places
    assert places is not None
    return places.nearest(SCENES.astype(np.float32))


def test_environments_get_names_that_no_phone_could_give_alone() -> None:
    phones = [phone(number) for number in range(PHONES)]
    shared = {"phones": PHONES, "labels": CLASSES, "dropout": 0.1}
    found = played(
        discovery_parameters(start=START, sums=1, cells_noise=1.0, labels_noise=19.0, **shared),
        phones,
    )
    assert isinstance(found, Discovered)
    assert found.names == (None, None), "the noise on the labels is too much"
    assert found.cell_labels == (-1, -1, -1), "so nobody named any kind of place"
    assert {tuple(named_by(each)) for each in phones} == {(None, None)}

    samples = unnamed("the one before", found).points
    asked = labelling_parameters(
        samples=samples, votes_noise=3.0, check_noise=3.0, threshold=12.0, **shared
    )
    answered = played(asked, phones)
    assert isinstance(answered, Labelled)
    # (If there is a third cell, it lies beside the fuller of the two.)
    cells = [int(np.argmax(samples.array() @ scene)) for scene in SCENES]
    assert [answered.names[cell] for cell in cells] == list(CLASSES)
    # Half of the phones know each, and all of them know both from now on.
    assert all(20 <= answered.agreement[cell] <= 45 for cell in cells)
    assert {tuple(named_by(each)) for each in phones} == {CLASSES}
    steps = [each.step for each in phones[0].ledger.releases if each.unit is Unit.PHONE]
    assert steps == ["cells 1", "labels", "votes", "check"]
