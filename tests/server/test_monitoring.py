"""The board and the alerts ask for figures that the server really serves."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import promql_parser
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.parser import text_string_to_metric_families
from support.api_caller import Server
from support.parameters import statistics_parameters
from support.played_phase import PARAMETERS, PHONES

from earshot_protocol.api import PHASES, TASK
from earshot_protocol.secure_sum.decoding import UnrecoverableSecretError, recover_checked
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_server.api.problems import KINDS
from earshot_server.discovery.optics import Optics
from earshot_server.helper.api import HelperSettings, create_helper_app
from earshot_server.helper.folder import HelperFolder
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.store.database import Database
from earshot_server.store.driving import Driving
from earshot_server.store.errands import Errands
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.progress import (
    CAUSES,
    NOT_IN_VAIN,
    OTHER,
    RESTORED,
    SERVER,
    STATUSES,
    TOO_FEW_ANSWERED,
    TOO_FEW_JOINED,
    WRONG_SHARES,
    PhaseProgress,
    cause,
)
from earshot_server.store.registry import Registry

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
BOARD = json.loads((DEPLOY / "grafana" / "earshot.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
HELPER_S_RULES = yaml.safe_load(
    (DEPLOY / "prometheus" / "helper-alerts.yaml").read_text(encoding="utf-8")
)
HELPER_S_ALERTS = [rule for group in HELPER_S_RULES["groups"] for rule in group["rules"]]
LEADER = Ed25519PrivateKey.generate()
BY_TWO = statistics_parameters(summation=SummationName.TWO_OPERATORS)
PROMETHEUS_S_OWN = {"up": {"job", "instance"}}
Labels = dict[str, dict[str, set[str]]]
"""Name of a metric → name of a label → its values."""


def gather(database: Database, joining: int, least: int = 3, seconds: float = 1000.0) -> bytes:
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, PARAMETERS, least, database.now() + seconds)
    for _ in range(joining):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    return phase


def awaiting_helper(database: Database) -> bytes:
    """A phase by two operators that waits for an offer."""
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, BY_TWO, 3, database.now() + 1000.0)
    registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    registry.end_gathering(phase)
    store, leading = PostgresPhaseStore(database), LeaderKeys(LEADER, bytes(32))
    Coordinator.start(store, Optics(), BY_TWO, database.now(), phase=phase, leading=leading)
    return phase


@pytest.fixture
def served(server: Server, database: Database) -> Labels:
    """What a server serves in whose database there is one of everything."""
    driver = Driver(database, Optics(), 1e9)
    running = gather(database, PHONES)
    gather(database, 2, seconds=-1.0)  # fails for want of phones
    driver.turn()
    server.order(f"{PHASES}/{server.start(PARAMETERS).hex()}/stop")
    server.start(statistics_parameters())
    Driving(database).fail(running, "KeyError")
    Errands(database).fail(awaiting_helper(database), "unreachable")
    database.query("INSERT INTO refusals VALUES (%s, 'least-phones', 2)", (running,))
    server.get(TASK)
    server.get(PHASES, Authorization="Bearer wrong")
    return labels_of(server)


def labels_of(server: Server) -> Labels:
    return labels_in(server.read("/metrics").text)


def labels_in(text: str) -> Labels:
    found: Labels = defaultdict(lambda: defaultdict(set))
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name]  # those without labels, too
            for label, value in sample.labels.items():
                found[sample.name][label].add(value)
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def walk(node: Any) -> Iterator[Any]:
    """All nodes of an expression."""
    yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        child = getattr(node, name, None)
        if child is not None and type(child).__module__.startswith("promql"):
            yield from walk(child)
    for argument in getattr(node, "args", ()) or ():
        yield from walk(argument)


def complaints(expression: str, served: Labels) -> list[str]:
    """What an expression asks for that is not served."""
    found, selected = [], set()
    nodes = list(walk(promql_parser.parse(expression)))
    for node in nodes:
        if not isinstance(node, promql_parser.VectorSelector):
            continue
        known = {**{name: set(labels) for name, labels in served.items()}, **PROMETHEUS_S_OWN}
        if node.name not in known:
            found.append(f"no metric {node.name}")
            continue
        selected |= known[node.name]
        for matcher in node.matchers.matchers:
            if matcher.name not in known[node.name]:
                found.append(f"{node.name} has no label {matcher.name}")
    for node in nodes:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            found += [f"no label {name}" for name in node.modifier.labels if name not in selected]
    return found


def test_the_check_finds_what_is_not_served(served: Labels) -> None:
    assert complaints("earshot_phones > 0", served) == []
    assert complaints("earshot_fones > 0", served) == ["no metric earshot_fones"]
    wrong = 'sum by (kind) (rate(earshot_requests_total{endpont="x"}[5m])) / earshot_step_expected'
    assert complaints(wrong, served) == ["earshot_requests_total has no label endpont"]
    assert complaints("sum by (sort) (earshot_step_expected)", served) == ["no label sort"]
    with pytest.raises(ValueError, match="parenthesis"):
        complaints("sum(earshot_phones", served)


def test_board_and_alerts_ask_for_what_is_served(served: Labels) -> None:
    asked = list(expressions())
    assert len(asked) > 25
    assert {where: found for where, text in asked if (found := complaints(text, served))} == {}


def test_values_and_names_in_words_are_served(served: Labels) -> None:
    """Values that are matched are values there may be; legends and texts name labels of theirs."""
    allowed = {"kind": {kind.name for kind in KINDS.values()} | {"internal"}, "job": {"earshot"}}
    for where, text in expressions():
        for node in walk(promql_parser.parse(text)):
            if isinstance(node, promql_parser.VectorSelector):
                for matcher in node.matchers.matchers:
                    values = allowed.get(matcher.name) or served[node.name][matcher.name]
                    assert set(matcher.value.split("|")) <= values, where
    metrics = {name for name in served if name.startswith("earshot_")}

    def labels(text: str) -> set[str]:
        named = [name for name in metrics if re.search(rf"\b{name}\b", text)]
        return {label for name in named for label in served[name]}

    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            used = set(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
            assert used <= labels(target["expr"]), panel["title"]
    for alert in ALERTS:
        used = set(re.findall(r"\$labels\.(\w+)", str(alert["annotations"])))
        assert used <= labels(alert["expr"]), alert["alert"]


def test_every_stored_figure_is_on_the_board_or_in_an_alert(served: Labels) -> None:
    texts = " ".join(text for _, text in expressions())
    names = {name.removesuffix("_created") for name in served if name.startswith("earshot_")}
    parts = {"earshot_request_seconds_count", "earshot_request_seconds_sum"}
    hidden = {name for name in names - parts if not re.search(rf"\b{name}", texts)}
    assert hidden == set()


def test_alerts_say_what_to_do_and_have_names_of_their_own() -> None:
    assert len({alert["alert"] for alert in ALERTS}) == len(ALERTS) >= 10
    for alert in (*ALERTS, *HELPER_S_ALERTS):
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert alert["annotations"]["summary"]
        assert alert["annotations"]["description"]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    scrape = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text(encoding="utf-8"))
    assert scrape["scrape_configs"][0]["metrics_path"] == "/metrics"
    assert scrape["rule_files"] == ["alerts.yaml"]


def test_a_helper_s_alerts_ask_for_what_a_helper_serves(tmp_path: Path) -> None:
    with closing(HelperFolder.make(tmp_path).database):
        client = create_helper_app(HelperSettings(tmp_path)).test_client()
        client.get("/nothing")
        token = (tmp_path / "operator.token").read_text().strip()
        text = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    served = labels_in(text)
    found = {each["alert"]: complaints(each["expr"], served) for each in HELPER_S_ALERTS}
    assert len(found) == len(HELPER_S_ALERTS)
    assert not any(found.values()), found
    assert served["earshot_helper_refusals_total"]["name"] == {
        *("against-policy", "too-many-offers", "unknown-sum", "early", "late"),
        *("already-answered", "too-few", "wrong-list"),
    }
    assert served["earshot_helper_kept"]["what"] == {"keys", "totals", "sums"}


def test_labels_do_not_grow_with_phases_or_phones(
    server: Server, database: Database, served: Labels
) -> None:
    before = {name: {k: set(v) for k, v in labels.items()} for name, labels in served.items()}
    for _ in range(3):
        Errands(database).fail(awaiting_helper(database), "unreachable")
        gather(database, PHONES)
        gather(database, 1, seconds=-1.0)
    Driver(database, Optics(), 1e9).turn()
    after = labels_of(server)
    groups = ("phase", "step", "gathering", "dr", "helper")
    for name in before:
        if name.startswith(tuple(f"earshot_{group}" for group in groups)):
            assert after[name] == before[name], name


# -------------------------------------------------------------------------------- the figures


def test_progress_is_what_it_says(database: Database) -> None:
    progress = PhaseProgress(database)
    assert (progress.steps(), progress.gatherings(), progress.overdue()) == ((), (), 0.0)
    assert progress.statuses() == dict.fromkeys(STATUSES, 0)
    driver = Driver(database, Optics(), 1e9)
    hasty = msgspec.structs.replace(PARAMETERS, step_seconds=5000.0)
    registry = Registry(database)
    for parameters in (PARAMETERS, hasty):
        phase = os.urandom(16)
        registry.gather(phase, parameters, 3, database.now() + 1000.0)
        for _ in range(PHONES):
            registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    driver.turn()
    gather(database, 5)
    database.query("UPDATE steps SET opened = opened - 40 WHERE phase = %s", (phase,))
    database.query(
        "INSERT INTO answers (phase, number, phone, answer) VALUES (%s, 0, 3, 'x')", (phase,)
    )
    (step,) = progress.steps()
    assert step[:5] == ("learning", "local centroids", 2, 2 * PHONES, 1)
    assert 40 <= step.age < 100
    assert 0 < step.left <= 100
    assert progress.gatherings() == (("learning", PHONES, 5),)
    assert progress.overdue() == 0.0
    database.query("UPDATE phases SET deadline = seconds_now() - 70")
    assert 70 <= progress.overdue() < 130
    assert progress.steps()[0].left < 0
    assert progress.in_trouble() == 0
    Driving(database).fail(phase, "KeyError")
    assert progress.in_trouble() == 1
    assert progress.statuses() == dict(zip(STATUSES, (1, 2, 0, 0, 0), strict=True))


def test_who_waits_for_the_helper_is_said_with_the_reason_and_since_when(
    database: Database,
) -> None:
    progress, errands = PhaseProgress(database), Errands(database)
    assert progress.waits_for_helper() == ()
    gather(database, PHONES)
    Driver(database, Optics(), 1e9).turn()  # a phase that waits for phones alone
    first, second, third = (awaiting_helper(database) for _ in range(3))
    for phase, age in ((first, 40), (second, 70), (third, 20)):
        database.query("UPDATE steps SET opened = opened - %s WHERE phase = %s", (age, phase))
    errands.fail(first, "unreachable")
    errands.fail(second, "against_policy")
    errands.fail(second, "unreachable")
    (new, others) = progress.waits_for_helper()
    assert new[:4] == ("statistics", "histogram: offer", NOT_IN_VAIN, 1)
    assert others[:4] == ("statistics", "histogram: offer", "unreachable", 2)
    assert 20 <= new.age < 40 <= 70 <= others.age
    database.query(
        "INSERT INTO answers (phase, number, phone, answer) VALUES (%s, 0, %s, 'x')",
        (second, HELPER),
    )
    Registry(database).stop(third, "stopped by an operator")
    (left,) = progress.waits_for_helper()
    assert left[2:4] == ("unreachable", 1)
    assert left.age >= 40


def test_failures_are_counted_by_cause(server: Server, database: Database) -> None:
    progress = PhaseProgress(database)
    gather(database, 2, seconds=-1.0)
    short = gather(database, PHONES)
    driver = Driver(database, Optics(), 1e9)
    driver.turn()
    database.query("UPDATE phases SET deadline = 0 WHERE phase = %s", (short,))
    driver.turn()
    server.order(f"{PHASES}/{server.start(PARAMETERS).hex()}/stop")
    assert progress.failures() == {
        TOO_FEW_JOINED: 1,
        TOO_FEW_ANSWERED: 1,
        WRONG_SHARES: 0,
        SERVER: 0,
        RESTORED: 0,
        OTHER: 0,
    }
    assert progress.statuses() == dict(zip(STATUSES, (0, 0, 0, 2, 1), strict=True))
    assert cause("the server failed 12 times (KeyError), in the step 'x'") == SERVER
    with pytest.raises(UnrecoverableSecretError) as wrong:
        recover_checked({1: 1, 2: 2, 3: 3}, 2, 3, lambda secret: False)
    assert cause(str(wrong.value)) == WRONG_SHARES
    assert cause("no clusters were found") == OTHER
    assert set(CAUSES) == {TOO_FEW_JOINED, TOO_FEW_ANSWERED, WRONG_SHARES, SERVER, RESTORED}
