"""Each attack of a server that deviates, run for real: what it learns now, exactly.

What it still learns is in docs/threat-model.md, with these numbers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Collection, Sequence
from unittest import mock

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow
from support.deviating_server import DeviatingServer, Story, drawn, joined

from earshot_protocol.errors import RefusedError, TooManyDropoutsError
from earshot_protocol.messages import decode_task
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.graph import Graph
from earshot_protocol.secure_sum.messages import AdvertiseKeys, MaskInput
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.wire import encode

PHONES, LENGTH = 300, 4
PARAMETERS = choose(PHONES, (LENGTH,), 50, 0.2, 0.05)
DEGREE, THRESHOLD = PARAMETERS.degree, PARAMETERS.threshold
RING = Graph.draw(PARAMETERS, random.Random(2).randbytes)._ring.tolist()
"""The phones in the order in which the graph lays them, where the server draws it as it should."""
SYBILS = frozenset(random.Random(1).sample(range(PHONES), 15))
"""γn phones in league with the server."""


INPUTS = np.random.default_rng(0).integers(-50, 51, (PHONES, LENGTH))


@pytest.fixture(scope="module")
def masked() -> DeviatingServer:
    """All have sent their masked input; to be copied."""
    return DeviatingServer(PARAMETERS, INPUTS)


@pytest.fixture
def server(masked: DeviatingServer) -> DeviatingServer:
    return masked.copy()


# ------------------------------------------------------------------------- false survivor lists


def half_and_half(server: DeviatingServer) -> Story:
    """Everybody is told that the neighbours before it on the ring are gone, as far as it bears."""
    parameters = server.parameters
    place = {phone: at for at, phone in enumerate(RING)}
    most = min(parameters.degree // 2, parameters.degree - parameters.threshold)
    return lambda phone: [RING[(place[phone] - back) % PHONES] for back in range(1, most + 1)]


def distributed(server: DeviatingServer, wanted: Collection[int]) -> dict[int, set[int]] | None:
    """Whom to tell that who is gone, so that t learn it of each that is wanted; None: impossible.

    A phone stops where fewer than t are said to stay, so it is told of as many as that leaves. The
    most that can be told is a maximum flow from the wanted phones to those that are told.
    """
    graph, threshold = server.graph, server.parameters.threshold
    honest = [phone for phone in graph if phone not in server.corrupted]
    source, sink = 2 * PHONES, 2 * PHONES + 1
    edges: list[tuple[int, int, int]] = []
    needed = 0
    for phone in wanted:
        told = [other for other in graph[phone] if other not in server.corrupted]
        demand = max(0, threshold - (len(graph[phone]) - len(told)))
        needed += demand
        edges.append((source, phone, demand))
        edges += [(phone, PHONES + other, 1) for other in told]
    edges += [(PHONES + phone, sink, len(graph[phone]) - threshold) for phone in honest]
    rows, columns, capacities = (np.array(column, np.int32) for column in zip(*edges, strict=True))
    size = 2 * PHONES + 2
    flow = maximum_flow(csr_matrix((capacities, (rows, columns)), (size, size)), source, sink)
    if flow.flow_value < needed:
        return None
    story: dict[int, set[int]] = {phone: set() for phone in honest}
    used = flow.flow.tocoo()
    for phone, other, units in zip(used.row, used.col, used.data, strict=True):
        if units > 0 and phone < PHONES <= other < 2 * PHONES:
            story[int(other) - PHONES].add(int(phone))
    return story


def check_opened(server: DeviatingServer, *expected: Collection[int]) -> None:
    """These sums are open and no others are, each the right one; a ballot is the sum of one."""
    opened = server.opened()
    assert opened.keys() == {*map(frozenset, expected)}
    for phones, total in opened.items():
        np.testing.assert_array_equal(total, server.inputs[[*phones]].sum(axis=0))


@pytest.mark.slow
def test_before_two_stories_opened_every_ballot() -> None:
    """The smallest t, which is the largest too for the smallest k: k/2, as no condition forbids."""
    former = msgspec.structs.replace(PARAMETERS, neighbours=72, threshold=36)
    with mock.patch.object(SumParameters, "check"):
        server = DeviatingServer(former, INPUTS)
        server.tell(half_and_half(server))
    assert server.refusals == 0
    check_opened(server, *([phone] for phone in range(PHONES)))


def test_two_stories_open_no_ballot(server: DeviatingServer) -> None:
    """The sum of all is what they open, as the truth would."""
    assert (PARAMETERS.neighbours, PARAMETERS.threshold) == (76, 39)
    server.tell(half_and_half(server))
    assert server.refusals == 0
    check_opened(server, range(PHONES))


def test_a_phone_that_is_told_of_one_more_stops(server: DeviatingServer) -> None:
    half = PARAMETERS.degree // 2
    place = {phone: at for at, phone in enumerate(RING)}
    server.tell(lambda phone: [RING[place[phone] - back] for back in range(1, half + 1)])
    assert server.refusals == PHONES
    check_opened(server)


def test_without_sybils_it_still_cuts_six_phones_of_three_hundred_off(
    server: DeviatingServer,
) -> None:
    """It says that all neighbours of a phone are gone, not the phone: their masks come off."""
    for count, spacing, possible in ((6, 42, True), (7, 42, False), (7, 39, False)):
        victims = [RING[spacing * number] for number in range(count)]
        gone = {other for victim in victims for other in server.graph[victim]}
        if gone.isdisjoint(victims):
            story = distributed(server, gone)
            assert (story is not None) == possible
    victims = [RING[42 * number] for number in range(6)]
    gone = {other for victim in victims for other in server.graph[victim]}
    story = distributed(server, gone)
    assert story is not None
    server.tell(story.__getitem__)
    assert server.refusals == 0
    check_opened(server, *([victim] for victim in victims), {*RING} - gone - {*victims})


@pytest.mark.slow
def test_with_sybils_up_to_gamma_it_still_opens_most(server: DeviatingServer) -> None:
    """A corrupted neighbour counts for both stories. Nothing short of signed views stops that."""
    server.corrupted = SYBILS
    surplus = 2 * PARAMETERS.threshold - PARAMETERS.degree
    victims = [
        phone
        for phone in range(PHONES)
        if phone not in SYBILS and len(SYBILS.intersection(server.graph[phone])) >= surplus
    ]
    story = distributed(server, victims)
    assert story is not None
    server.tell(story.__getitem__)
    assert server.refusals == 0
    # This graph's; over 200,000 drawn graphs 265 on average, 197 or more in 99 of 100.
    assert len(victims) == 266
    check_opened(server, *([victim] for victim in victims), {*RING} - SYBILS - {*victims})


# ------------------------------------------------------------- a graph that the server made up


def among(phones: Sequence[int], degree: int) -> list[tuple[int, int]]:
    """A ring of these phones, each with so many neighbours."""
    steps = range(1, degree // 2 + 1)
    return [(phone, phones[place - step]) for place, phone in enumerate(phones) for step in steps]


def across(phones: Sequence[int], others: Sequence[int], degree: int) -> list[tuple[int, int]]:
    """So many of the others for each of these phones, in turn."""
    ends = itertools.cycle(others)
    return [(phone, next(ends)) for phone in phones for _ in range(degree)]


def test_a_drawn_graph_and_two_stories_open_nearly_half_of_all_ballots_without_sybils() -> None:
    """No victim's mask is in common with another victim; all of the others' locks open.

    No graph opens more: of V victims and L others, the others have Lk neighbours at most, of whom
    Lt must tell a lock, and to each victim t must stay, of whom it does not: Lt + Vt ≤ Lk.
    """
    count = PHONES * (DEGREE - THRESHOLD) // DEGREE
    assert count == 146
    victims, others = RING[:count], RING[count:]
    server = DeviatingServer(
        PARAMETERS, INPUTS, graph=joined(among(others, 4) + across(others, victims, DEGREE - 4))
    )
    story = distributed(server, others)
    assert story is not None
    server.tell(story.__getitem__)
    assert server.refusals == 0
    check_opened(server, *([victim] for victim in victims))


def test_a_drawn_graph_and_two_stories_open_every_ballot_with_eight_sybils() -> None:
    """Who has 2t − k corrupted neighbours is open to both stories, and γn would be fifteen."""
    sybils, honest = RING[:8], RING[8:]
    surplus = 2 * THRESHOLD - DEGREE
    half = (DEGREE - surplus) // 2
    edges = among(honest, 2 * half) + across(honest, sybils, surplus)
    server = DeviatingServer(PARAMETERS, INPUTS, sybils, joined(edges))
    place = {phone: at for at, phone in enumerate(honest)}
    server.tell(lambda phone: [honest[place[phone] - back] for back in range(1, half + 1)])
    assert server.refusals == 0
    check_opened(server, *([phone] for phone in honest))


def test_a_graph_of_cliques_opens_sums_of_groups_and_tells_no_lie_at_all() -> None:
    """A phone is content with t neighbours, so t + 1 phones are enough for a sum of their own."""
    size = THRESHOLD + 1
    cliques = [RING[first : first + size] for first in range(0, 6 * size, size)]
    cliques.append(RING[6 * size :])
    graph = joined(pair for clique in cliques for pair in itertools.combinations(clique, 2))
    masked = DeviatingServer(PARAMETERS, INPUTS, graph=graph)
    for corrupted, sizes in ((0, [40, 40, 40, 40, 40, 40, 60]), (15, [25, 40, 40, 40, 40, 40, 60])):
        server = masked.copy()
        server.corrupted = cliques[0][:corrupted]
        server.tell(lambda phone: ())
        assert server.refusals == 0
        honest = [{*clique} - {*server.corrupted} for clique in cliques]
        assert sorted(map(len, honest)) == sizes
        check_opened(server, *honest)


def test_a_phone_with_fewer_than_t_neighbours_stops() -> None:
    """So no group is smaller."""
    graph = joined(itertools.combinations(range(THRESHOLD), 2))
    with pytest.raises(RefusedError, match="a neighbourhood must have 39 to 76 phones, not 38"):
        DeviatingServer(PARAMETERS, INPUTS, graph=graph)


# --------------------------------------------------------- one list for all, of the right phones


CROWD = choose(1_000, (LENGTH,), 50, 0.05, 0.05)
HALF = CROWD.degree // 2
CROWD_RING = Graph.draw(CROWD, random.Random(2).randbytes)
CROWD_INPUTS = np.random.default_rng(0).integers(-50, 51, (CROWD.phones, LENGTH))


@pytest.fixture(scope="module")
def crowd() -> DeviatingServer:
    """A thousand phones on a ring, masked; to be copied."""
    return DeviatingServer(CROWD, CROWD_INPUTS, graph=drawn(CROWD_RING))


def around(places: np.ndarray) -> np.ndarray:
    """How many neighbours of each place of the ring are marked."""
    closed = np.concatenate((places[-HALF:], places, places[:HALF])).astype(int)
    return np.convolve(closed, np.ones(2 * HALF + 1, dtype=int), "valid") - places


def smallest_cut(
    corrupted: np.ndarray, most: int, *, left_alone: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fewest honest phones that can be cut out of the ring, those gone, and those asked.

    Who is cut out lies between two runs of k/2 places where all are corrupted or said to be gone,
    at most so many of these. All phones hear of the same ones, and none is asked that would refuse.
    Those said to be gone are left alone, or else asked as if they had stayed.
    """
    cuts = []
    for first in np.flatnonzero(corrupted):
        for before in range(HALF):
            for length in range(1, CROWD.threshold):
                places = (first - before + np.arange(2 * HALF + length)) % len(corrupted)
                inside, gone = np.zeros((2, len(corrupted)), dtype=np.bool_)
                inside[places[HALF : HALF + length]], gone[places] = True, True
                gone &= ~inside & ~corrupted
                inside &= ~corrupted
                if not inside.any() or np.count_nonzero(gone) > most:
                    continue
                asked = ~corrupted & (around(gone) <= CROWD.degree - CROWD.threshold)
                if left_alone:
                    asked &= ~gone
                if (around(asked | corrupted)[inside | gone] >= CROWD.threshold).all():
                    cuts.append((inside, gone, asked))
    return min(cuts, key=lambda cut: int(cut[0].sum()))


def places(*marked: int) -> np.ndarray:
    """Of the ring, those that are marked."""
    marks = np.zeros(CROWD.phones, dtype=np.bool_)
    marks[[*marked]] = True
    return marks


@pytest.mark.parametrize(
    ("corrupted", "gone", "left_alone", "opened"),
    [
        pytest.param(places(15, 16, 33, 34), 30, True, 16, id="4 corrupted"),
        pytest.param(places(*range(15, 32), 33, 34), 15, True, 1, id="19 corrupted"),
        pytest.param(
            places(15, 16, 25, 26), 30, False, 8, id="4 corrupted, the vanished are asked"
        ),
        pytest.param(places(16, 35), 32, False, 18, id="2 corrupted, the vanished are asked"),
        pytest.param(
            places(*random.Random(1).sample(range(CROWD.phones), 50)),
            30,
            True,
            16,
            id="50 anywhere",
        ),
    ],
)
def test_one_list_for_all_cuts_a_few_phones_out_of_the_ring(
    crowd: DeviatingServer, corrupted: np.ndarray, gone: int, left_alone: bool, opened: int
) -> None:
    """No phone could find a lie in another's list. Who vanishes is for the server alone to say."""
    assert (CROWD.degree, CROWD.threshold) == (34, 19)
    assert gone <= CROWD.largest_dropout_count
    cut = smallest_cut(corrupted, gone, left_alone=left_alone)
    assert [int(part.sum()) for part in cut[:2]] == [opened, gone]
    sybils, inside, vanished, asked = (
        {*CROWD_RING._ring[marked].tolist()} for marked in (corrupted, *cut)
    )
    server = crowd.copy()
    server.corrupted = sybils
    server.tell(lambda phone: vanished if phone in asked else None)
    assert server.refusals == 0
    check_opened(server, inside, server.graph.keys() - sybils - inside - vanished)


def test_one_list_for_all_and_a_drawn_graph_open_ballots_without_sybils() -> None:
    """Each that is said to be gone hears so of the others, and that the victims stayed."""
    gone, victims, rest = (
        CROWD_RING._ring[each].tolist() for each in np.split(np.arange(CROWD.phones), (30, 53))
    )
    edges = among(gone, 14) + across(gone, victims, 15) + across(gone, rest[:11], 5)
    server = DeviatingServer(CROWD, CROWD_INPUTS, graph=joined(edges + among(rest, 20)))
    server.tell(lambda phone: None if phone in victims else gone)
    assert server.refusals == 0
    assert len(victims) == 23
    check_opened(server, *([victim] for victim in victims), rest)


# --------------------------------------------------------------------- an invented neighbourhood


def test_an_invented_neighbourhood_still_opens_the_ballot_inside_it() -> None:
    """Keys are not signed yet: the server makes up all neighbours, and holds all of their shares.

    What is left to the victim is its own share of the noise, one part in n'.
    """
    crowd = choose(12, (LENGTH,), 50, 0.25, 0.1)
    server = DeviatingServer(crowd, INPUTS[:12], frozenset(range(12)) - {7})
    server.tell(lambda phone: ())
    assert server.refusals == 0
    check_opened(server, [7])


# ------------------------------------------------------------------------------ different tasks


SMALL = choose(12, (3,), 50, 0.25, 0.1)


def until_masked(told: Callable[[int], bytes]) -> tuple[Aggregator, dict[int, Participant]]:
    """A sum whose phones were told this, each by its number, up to the round of inputs."""
    aggregator = Aggregator(bytes(16), SMALL, told=told(0))
    phones = {}
    for _ in range(2):
        for phone in range(SMALL.phones):
            task = aggregator.task_for(phone)
            if isinstance(task, AdvertiseKeys):
                phones[phone] = Participant(task, np.full(3, phone), told(phone))
            assert task is not None
            aggregator.accept(phone, phones[phone].answer(task))
        aggregator.advance()
    return aggregator, phones


@pytest.mark.parametrize("victims", [[5], [0, 1, 2, 3, 4, 5], list(range(11))])
def test_a_phone_that_was_told_otherwise_stops_before_its_input_leaves_it(
    victims: list[int],
) -> None:
    """As when the server puts one entry into a vote that is the victim's alone."""
    aggregator, phones = until_masked(lambda phone: b"other" if phone in victims else b"task")
    sent = []
    for phone, participant in phones.items():
        task = aggregator.task_for(phone)
        assert isinstance(task, MaskInput)
        before = participant.save()
        alike = sum((other in victims) == (phone in victims) for other in task.senders)
        if alike >= SMALL.threshold:
            sent.append(phone)
            participant.answer(task)
            continue
        with pytest.raises(TooManyDropoutsError, match=f"shares of {alike} neighbours"):
            participant.answer(task)
        assert participant.save() == before
    # Those that go on are all of one mind, and enough to keep each other's secrets.
    assert len({phone in victims for phone in sent}) <= 1
    assert not sent or len(sent) > SMALL.threshold


def test_phones_that_were_told_the_same_sum() -> None:
    aggregator, phones = until_masked(lambda phone: b"task")
    for _ in range(2):
        for phone in range(SMALL.phones):
            task = decode_task(encode(aggregator.task_for(phone)))  # type: ignore[arg-type]
            aggregator.accept(phone, phones[phone].answer(task))  # type: ignore[arg-type]
        aggregator.advance()
    assert aggregator.result().tolist() == [sum(range(12))] * 3
