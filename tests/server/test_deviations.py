"""Whole phases in which one side deviates, with real sums: what the other makes of it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from datetime import date

import msgspec
import numpy as np
import pytest
from support.deviating_server import DeviatingServer, joined
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS, PHONES, deceive, play
from support.points import HeardPoints
from support.steps import Step

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, TooManyDropoutsError
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import CENTROID_VOTE, GlobalCentroids
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.messages import AdvertiseKeys, MaskedInput, SumAnswer, SumTask
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Matrix

VICTIM = 4


def test_a_phone_that_is_shown_other_candidates_stops_before_it_votes() -> None:
    """One entry would be the victim's alone (Pasquini et al. 2022); now there is no sum at all.

    The others masked against the victim, and hold no shares of it that open: nothing is opened.
    """
    game = play()
    game.until(Step.CENTROID_VOTE_ADVERTISE)
    task = game.coordinator.task_for(VICTIM)
    assert isinstance(task, GlobalCentroids)
    other = msgspec.structs.replace(task, centroids=Matrix.of(-task.centroids.array()))
    deceive(game, VICTIM, other)
    before = game.phones[VICTIM].ledger.export()
    with pytest.raises(TooManyDropoutsError, match="shares of 0 neighbours arrived"):
        game.answer(VICTIM)
    assert game.phones[VICTIM].ledger.export() == before
    game.step()
    game.step()
    assert game.coordinator.step == Step.FAILED
    assert game.coordinator.state.failure.startswith(f"lock of phone {VICTIM}: 0 shares")


def test_phones_that_are_all_shown_different_candidates_send_no_vote_at_all() -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_ADVERTISE)
    for phone in range(PHONES):
        task = game.coordinator.task_for(phone)
        assert isinstance(task, GlobalCentroids)
        shown = Matrix.of(task.centroids.array() + np.float32(phone))
        answer = game.phones[phone].answer(msgspec.structs.replace(task, centroids=shown))
        assert answer is not None
        game.coordinator.accept(phone, answer)
    game.present.clear()
    game.step()
    game.present = set(range(PHONES))
    game.step()
    for phone in range(PHONES):
        with pytest.raises(TooManyDropoutsError):
            game.answer(phone)
    game.present.clear()
    game.step()
    assert game.coordinator.step == Step.FAILED


def test_a_total_that_no_honest_crowd_can_have_ends_the_phase_by_name() -> None:
    game = play()
    game.until(Step.CENTROID_VOTE_MASK)
    sum_parameters = game.coordinator._read().sum.parameters  # type: ignore[union-attr]
    answer = game.answer(VICTIM)
    assert isinstance(answer, MaskedInput)
    words = encoding.unpack(answer.vector, sum_parameters).copy()
    words[0] += 2 ** (sum_parameters.modulus_bits - 1)
    forged = encoding.pack(words, sum_parameters.modulus_bits)
    game.coordinator.accept(VICTIM, msgspec.structs.replace(answer, vector=forged))
    game.present -= {VICTIM}
    game.step()
    game.coordinator.accept(VICTIM, game.answer(VICTIM))
    game.step()
    assert game.coordinator.step == Step.FAILED
    ending = game.coordinator.task_for(0)
    assert isinstance(ending, Failed)
    assert "an entry of the sum came to -" in ending.reason
    assert "honest phones and their noise stay between" in ending.reason


@pytest.mark.parametrize(
    ("phones", "refused"), [(10**8, "largest_phones"), (10**7 + 1, "largest_phones")]
)
def test_a_claimed_crowd_is_refused(phones: int, refused: str) -> None:
    """Among 10^8 claimed phones a share was nonzero once in twelve million entries."""
    claimed = msgspec.structs.replace(PARAMETERS, phones=phones)
    with pytest.raises(RefusedError, match=refused):
        Policy().check_phase(claimed, Ledger(), date(2026, 3, 2))


def test_a_crowd_that_is_claimed_and_accepted_thins_a_share_to_one_in_ten_thousand() -> None:
    """No less than in a real crowd of that size, and no more: the rest are the server's phones."""
    for phones in (10**5, 10**7):
        claimed = msgspec.structs.replace(PARAMETERS, phones=phones)
        assert claimed.plan().mechanisms[CENTROID_VOTE].honest_survivors == 10_000  # type: ignore[attr-defined]


# ----------------------------------------------------------------------- a graph of the server's

HISTOGRAM = statistics_parameters(phones=10_000, contacts=5, noise=5.5, dropout=0.1, corrupted=0.05)


@dataclass
class WholePhone:
    """A phone with ledger and default policy, which meets a sum in the task of a phase."""

    phone: Phone

    def answer(self, task: SumTask) -> SumAnswer:
        if isinstance(task, AdvertiseKeys):
            asked = CountContacts(phase=bytes(16), parameters=HISTOGRAM, opening=task)
            return self.phone.answer(asked)
        return self.phone.answer(task)


class DrawingServer(DeviatingServer):
    """Of a phase of whole phones, each of which has met five people on a bus."""

    def join(self, opening: AdvertiseKeys) -> WholePhone:
        store = MemoryStore(np.zeros((5, 2), dtype=np.float32), ["bus"] * 5)
        random = np.random.default_rng([7, opening.index]).bytes
        return WholePhone(Phone(store, HeardPoints("points", 2), random=random))

    def _common(self, phone: int) -> dict[int, bytes]:
        return {}


def test_whole_phones_in_a_clique_of_thirty_believe_in_a_crowd_of_ten_thousand() -> None:
    """Each draws one noise share in 8,500, which is next to none, and its ledger has the ε of all.

    Nothing else is unusual: the other phones are in cliques of their own.
    """
    part = HISTOGRAM.plan().parts[0]
    assert isinstance(part, SecureSum)
    parameters = HISTOGRAM.sum_parameters(part, (HISTOGRAM.entries,))
    clique = range(parameters.threshold + 1)
    graph = joined(itertools.combinations(clique, 2))
    server = DrawingServer(parameters, np.zeros((0, 2)), graph=graph)
    server.tell(lambda phone: ())
    assert server.refusals == 0
    assert (len(clique), part.mechanism.honest_survivors) == (30, 8_500)
    ((phones, opened),) = server.opened().items()
    assert phones == frozenset(clique)
    # The crowd's noise has a deviation of 5.5 phones' counts, thirty shares of it one of .33.
    added = opened / unit_steps(5)
    assert np.abs(added - [len(clique), 0, 0, 0, 0]).max() < 4 * 5.5 * math.sqrt(30 / 8_500)
    costs = {release.epsilon for release in HISTOGRAM.plan().releases()}
    for whole in server.phones.values():
        assert {entry["epsilon"] for entry in whole.phone.ledger.export()} == costs
