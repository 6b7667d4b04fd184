"""A phone tells its user in a sentence what came of a phase."""

from __future__ import annotations

from typing import Any

import pytest
from support.endings import discovered, labelled, result
from support.points import HeardPoints
from support.published_statistics import published

from earshot_client.commands.report import Report
from earshot_client.phases.kinds import described
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.messages import Failed
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Ending

NOTHING = "nothing stands clear of the noise, so there is nothing to learn from it"
NOISE = (1.0, 1.0, 1.0)


def counted(*p_values: float) -> Statistics:
    return published(("bus", "park"), labelled=(41.0, -3.0), labelled_p_values=p_values)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (discovered(), "bus, park"),
        (result(), "bus, park; places without a name that stands clear of the noise: 1"),
        (discovered(name_p_values=NOISE), NOTHING),
        (result(name_p_values=NOISE), NOTHING),
        (labelled(name_p_values=NOISE), NOTHING),
        (counted(0.001, 1.0), "bus: 41; may be noise: park"),
        (counted(1.0, 1.0), NOTHING),
        (Failed(phase=bytes(16), reason="only 2 phones joined"), "only 2 phones joined"),
    ],
)
def test_an_ending_is_a_sentence(
    ending: Ending, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain: dict[str, Any] = described(ending)
    Report(Phone(MemoryStore(), HeardPoints("points", 2)), as_json=False).end(plain)
    printed = capsys.readouterr().out
    assert printed == f"phase over: {plain['type']}: {said}\n"
    assert "[" not in printed
