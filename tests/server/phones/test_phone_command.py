"""`earshot phone` against a server on loopback; as a process of its own where it is stopped."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import soundfile
from support.command import earshot
from support.parameters import learning_parameters
from support.phone_server import HangUp, PhoneServer, Reply, asking, problem, serving
from support.policies import without_budget
from support.recordings import RATE
from support.steps import STEPS, Step

from earshot_client.encoder import default_encoder
from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import ANSWER, ENROL, MESSAGEPACK, TASK, AskTask, decode_body
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait, decode_answer
from earshot_protocol.phases.learning import Budget, Result
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.sound_reading import SoundFile
from earshot_protocol.wire import encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore

CROWD = 8
LABELS = ("workshop", "park")
# So much budget that noise decides nothing: what is published can be compared.
PARAMETERS = learning_parameters(
    phones=CROWD,
    recordings=6,
    dimensions=3,
    geometry=Geometry.SPHERICAL,
    encoder=DEFAULT_ENCODER,
    labels=LABELS,
    local_centroids=8,
    top_local_centroids=4,
    top_global_centroids=4,
    centroid_votes=2,
    label_votes=2,
    budget=Budget(clustering=1e4, selection=1e3, centroid_vote=400.0, label_vote=400.0),
    step_seconds=1.0,
)
OUTCOME = {"workshop": (CROWD, (CROWD, 0)), "park": (CROWD, (0, CROWD))}
"""All phones know both environments, and each by its name."""
LIMITS = without_budget(least_phones=CROWD)
AGREES = (
    "--limit.least-phones", str(CROWD),
    "--limit.largest-epsilon", "inf", "--limit.largest-delta", "1",
    "--limit.largest-yearly-epsilon", "inf", "--limit.largest-yearly-delta", "1",
    "--limit.largest-lifetime-epsilon", "inf", "--limit.largest-lifetime-delta", "1",
    "--per-recording", "--any-delta",
    "--labels", "workshop,park",
)  # fmt: skip


def chord(label: str, seed: int) -> np.ndarray:
    """A second of low or of high harmonics in faint noise."""
    time = np.arange(RATE) / RATE
    random = np.random.default_rng([seed, len(label)])
    pitch = {"workshop": 150, "park": 900}[label]
    tones = sum(np.sin(2 * np.pi * pitch * k * time + random.uniform(0, 6)) for k in (1, 2, 3))
    return 0.1 * np.asarray(tones) + 0.01 * random.normal(size=RATE)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    for label in LABELS:
        (folder / label).mkdir()
        seconds = [chord(label, seed) for seed in range(3)]
        soundfile.write(folder / label / "1.wav", np.concatenate(seconds), RATE)
    return folder


def command(*words: object) -> list[str]:
    program = "from earshot_client.command import main; main()"
    return [sys.executable, "-c", program, "phone", *map(str, words)]


def run(*words: object, answers: str = "") -> subprocess.CompletedProcess[str]:
    with mock.patch.object(sys, "stdin", io.StringIO(answers)):
        return earshot("phone", *words)


@contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Phase:
    """A phase in memory: the other phones are in this process, and the first calls."""

    def __init__(self) -> None:
        self.coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), PARAMETERS, now=0.0)
        self.others = {number: self._other(number) for number in range(1, CROWD)}
        self.server = PhoneServer(self.reply)
        self.answers = 0
        self._let_others_answer()

    def _other(self, number: int) -> Phone:
        hierarchy = LabelHierarchy.flat(LABELS)
        phone = Phone(MemoryStore(), default_encoder(), LIMITS, hierarchy=hierarchy)
        for seed in range(3):
            for label in LABELS:
                recording = phone.hear(chord(label, 10 * number + seed), RATE)
                phone.label(recording, label)
        return phone

    def _let_others_answer(self) -> None:
        for number, phone in self.others.items():
            answer = phone.answer(self.coordinator.task_for(number))
            if answer is not None:
                self.coordinator.accept(number, answer)

    def reply(self, path: str, phone: str, body: bytes) -> Reply:
        assert phone == "1"
        if path == ANSWER:
            self.coordinator.accept(0, decode_answer(body))
            self.answers += 1
            if self.coordinator.advance(0.0):
                self._let_others_answer()
            return Reply(status=204)
        task = self.coordinator.task_for(0)
        if isinstance(task, Result) and task.phase in decode_body(body, MESSAGEPACK, AskTask).known:
            task = Wait(seconds=1e6)
        return Reply(encode(task))

    def outcome(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Votes for environments of each label, and for their labels; nobody votes for noise.

        Chance may part a label's centroids into two environments, between which its votes divide.
        """
        result = self.coordinator.result()
        assert isinstance(result, Result)
        votes = list(zip(result.labels, result.centroid_votes, result.label_votes, strict=True))
        return {
            name: (
                sum(kept for of, kept, _ in votes if of == label),
                tuple(
                    map(sum, zip(*(named for of, _, named in votes if of == label), strict=True))
                ),
            )
            for label, name in enumerate(LABELS)
        }


def takes_part(phase: Phase, folder: Path, sound: Path) -> tuple[object, ...]:
    return (
        "--data", folder, "--server", phase.server.url, "--invitation", "welcome", "--hear", sound,
        "--until-result", "--poll", "0.5", "--json", *AGREES,
    )  # fmt: skip


def test_a_phone_hears_enrols_and_sees_a_phase_through(tmp_path: Path, sound: Path) -> None:
    phase = Phase()
    with serving(phase.server):
        seen = run(*takes_part(phase, tmp_path / "phone", sound))
        assert (seen.returncode, phase.answers) == (0, len(STEPS)), seen.stderr
        assert phase.coordinator.step == Step.PUBLISHED
        for line in ("heard 6 seconds", "enrolled as phone 1", "answered: local centroids"):
            assert line in seen.stderr
    summary = json.loads(seen.stdout)
    assert (summary["recordings"], summary["labelled"]) == (6, 6)
    assert summary["ending"]["type"] == "result"
    assert summary["ending"]["phase"] == phase.coordinator.phase.hex()
    assert phase.outcome() == OUTCOME
    assert set(LABELS) <= set(summary["ending"]["environments"])
    steps = [entry["step"] for entry in summary["ledger"]]
    assert steps == [release.step for release in PARAMETERS.plan().releases()]
    kept = b"".join(path.read_bytes() for path in (tmp_path / "phone").iterdir())
    # A shorter word would be among so many random bytes once in a few hundred runs.
    assert b"workshop" not in kept
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "phone").iterdir()} == {
        "0o600"
    }
    shown = run("--data", tmp_path / "phone", "--ledger")
    assert (shown.returncode, shown.stderr) == (0, "")
    phase_shown = summary["ending"]["phase"][:8]
    rows = [line for line in shown.stdout.splitlines() if f"  {phase_shown}  " in line]
    assert len(rows) == len(set(steps)) == 4
    # What it costs is beside what this phone was told that it may.
    for unit in ("recording", "phone"):
        assert re.search(rf"^ever, per {unit}, at δ = 0.001 .* none +–$", shown.stdout, re.M)


class Killer:
    """Lets the server stop in the midst of a request, until its phone has been killed.

    Args:
        phase: whose server it is.
        after: whether the server deals with the request first, so that only its response is lost.
    """

    def __init__(self, phase: Phase, after: bool) -> None:
        self.phase = phase
        self.after = after
        self.seen: set[object] = set()
        self.reached = threading.Event()
        self.killed = threading.Event()
        self._handle = phase.server.handle
        phase.server.handle = self.handle  # type: ignore[method-assign]

    def handle(self, path: str, media: str, fields: dict[str, str], body: bytes) -> Reply:
        moment = (path, self.phase.coordinator.step)
        if moment in self.seen:
            return self._handle(path, media, fields, body)
        self.seen.add(moment)
        if self.after:
            reply = self._handle(path, media, fields, body)
            assert reply.status < 300, reply.body
        self.reached.set()
        assert self.killed.wait(60)
        self.killed.clear()
        raise HangUp

    def kill_and_resume(self, words: tuple[object, ...]) -> tuple[int, str]:
        """Start the phone, kill it at every moment of its life, start it again; its last output."""
        kills = 0
        while True:
            with running(*words) as process:
                while not self.reached.wait(0.01) and process.poll() is None:
                    pass
                if not self.reached.is_set():
                    out, err = process.communicate()
                    assert process.returncode == 0, err
                    return kills, out
                process.send_signal(signal.SIGKILL)
                process.wait()
            kills += 1
            self.reached.clear()
            self.killed.set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "after", [pytest.param(False, id="before"), pytest.param(True, id="after")]
)
def test_killed_at_every_request_the_outcome_is_that_of_an_undisturbed_life(
    tmp_path: Path, sound: Path, after: bool
) -> None:
    phase = Phase()
    with serving(phase.server):
        killer = Killer(phase, after)
        kills, out = killer.kill_and_resume(takes_part(phase, tmp_path, sound))
    # The enrolment, a task and an answer in every step, and the task that is the result.
    assert kills == 2 * len(STEPS) + 2
    assert phase.outcome() == OUTCOME
    summary = json.loads(out)
    assert summary["recordings"] == 6
    assert summary["ending"]["type"] == "result"
    steps = [entry["step"] for entry in summary["ledger"]]
    assert steps == [release.step for release in PARAMETERS.plan().releases()]
    assert list(phase.server.keys) == ["1"]


# ------------------------------------------------------------------------------- how it behaves


def test_sigterm_ends_it_cleanly_wherever_it_waits(tmp_path: Path) -> None:
    with serving(asking(Wait(seconds=1e5))) as server:
        words = ("--data", tmp_path, "--server", server.url, "--invitation", "welcome")
        with running(*words) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if "waiting" in line:
                    break
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "stopped\n", "")
        hanging, go_on = threading.Event(), threading.Event()

        def hang(path: str, body: bytes) -> Reply | None:
            hanging.set()
            go_on.wait(60)
            raise HangUp

        server.trap = hang
        with running(*words) as process:
            assert hanging.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            go_on.set()
        assert (process.returncode, err) == (0, "")
        assert out.endswith("stopped\n")


@pytest.mark.parametrize("method", ["seconds", "second"])
def test_sigterm_ends_it_in_the_middle_of_a_file_without_end(
    method: str, tmp_path: Path, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _second in range(10**6):
            pass
        raise AssertionError("nothing has ended this")

    monkeypatch.setattr(SoundFile, method, endless)
    # A server that is away keeps no phone from hearing.
    words = ("--data", str(tmp_path), "--server", "http://127.0.0.1:9", "--hear", str(sound))
    run = earshot("phone", *words, "--invitation", "welcome")
    assert (run.returncode, run.stdout) == (0, "stopped\n")


def test_a_refusal_is_named_and_the_phone_goes_on(tmp_path: Path) -> None:
    phase = Phase()
    with serving(phase.server):
        words = ("--data", tmp_path, "--server", phase.server.url, "--invitation", "welcome")
        with running(*words, "--poll", "0.01") as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("enrolled")
            assert process.stdout.readline().startswith(f"refused: least_phones: phones={CROWD}; ")
            asked = len(phase.server.requests)
            while len(phase.server.requests) < asked + 3:
                assert process.poll() is None
    assert phase.answers == 0


def test_the_visits_outcome_is_the_exit_status_of_once(tmp_path: Path) -> None:
    replies = [Reply(encode(Wait(seconds=9.0))), problem(500, "internal", "see the log")]
    server = PhoneServer(lambda path, phone, body: replies.pop(0))
    with serving(server):
        words = ("--data", tmp_path, "--server", server.url, "--invitation", "welcome", "--once")
        seen = run(*words)
        assert (seen.returncode, seen.stderr) == (0, "")
        assert seen.stdout == (
            "enrolled as phone 1\nwaiting: nothing to do now; no phase has begun for this phone\n"
        )
        seen = run(*words)
        assert (seen.returncode, seen.stderr) == (1, "")
        assert seen.stdout.endswith("trouble: internal: see the log\n")
        seen = run(*words, "--hours", hours_not_now())
        assert (seen.returncode, seen.stderr) == (0, "")
        assert "postponed: outside" in seen.stdout
    assert [path for path, _ in server.requests] == [ENROL, TASK, TASK]


def hours_not_now() -> str:
    hour = datetime.now().astimezone().hour
    return f"{(hour + 6) % 24}-{(hour + 12) % 24}"


def test_until_result_ends_with_a_failure_too_and_says_so(tmp_path: Path) -> None:
    with serving(asking(Failed(phase=bytes(16), reason="only 2 phones joined"))) as server:
        seen = run(
            "--data", tmp_path, "--server", server.url, "--invitation", "welcome", "--until-result"
        )
    assert seen.returncode == 0
    assert "phase over: failed: only 2 phones joined" in seen.stdout


def test_it_asks_on_the_terminal(tmp_path: Path, sound: Path) -> None:
    with serving(asking(Wait(seconds=9.0))) as server:
        words = ("--server", server.url, "--invitation", "welcome", "--hear", sound, "--once")
        seen = run(
            "--data",
            tmp_path,
            *words,
            "--ask",
            "--json",
            answers="train\n\nfjord\npark\n" + "\n" * 9,
        )
    assert seen.returncode == 0, seen.stderr
    assert "'fjord' is not a choice; accepted:" in seen.stderr
    assert "Where have you been?" in seen.stderr
    summary = json.loads(seen.stdout)
    assert (summary["recordings"], summary["labelled"]) == (6, 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--server: give"),
        (("--server", "http://earshot.example"), "use https"),
        (("--server", "http://127.0.0.1:1", "--poll", "0"), "--poll 0.0"),
        (("--server", "http://127.0.0.1:1", "--hours", "night"), "22-6"),
        (("--server", "http://127.0.0.1:1", "--labels", "a,a"), "labels repeat"),
        (("--server", "http://127.0.0.1:1", "--microphone", "--labelled", "2"), "labelled=2"),
        (("--server", "http://127.0.0.1:1", "--microphone", "--recordings", "-1"), "at least 0"),
        (("--server", "http://127.0.0.1:1", "--hear", "/nowhere"), "no folder /nowhere"),
        (("--server", "http://127.0.0.1:1", "--limit.least-phones", "-1"), "least_phones"),
        (("--server", "http://127.0.0.1:1", "--limit.least-phones", "50.5"), "a whole number"),
        (("--server", "http://127.0.0.1:1", "--limit.fewest-phones", "50"), "no such limit"),
        (("--server", "http://127.0.0.1:1"), "invitation code"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_two(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    seen = earshot("phone", "--data", tmp_path, *words)
    assert (seen.returncode, seen.stdout) == (2, "") or "heard" in seen.stdout
    assert seen.stderr.startswith("earshot: ")
    assert said in seen.stderr
    assert seen.stderr.count("\n") == 1


def test_a_folder_in_use_without_key_or_in_the_way_is_refused(tmp_path: Path) -> None:
    with serving(asking(Wait(seconds=1e5))) as server:
        words = ("--data", tmp_path, "--server", server.url, "--invitation", "welcome")
        with running(*words) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("enrolled")
            second = run(*words)
            assert (second.returncode, second.stderr.count("\n")) == (2, 1)
            assert "open elsewhere" in second.stderr
    (tmp_path / "phone.key").unlink()
    lost = run(*words)
    assert (lost.returncode, lost.stderr.count("\n")) == (2, 1)
    assert "phone.key" in lost.stderr
    blocked = run("--data", tmp_path / "phone.db", *words[2:])
    assert (blocked.returncode, blocked.stderr.count("\n")) == (2, 1)


def test_a_forged_invitation_and_a_server_that_is_away(tmp_path: Path, sound: Path) -> None:
    with serving(asking(Wait(seconds=1e5))) as server:
        words = ("--data", tmp_path, "--server", server.url, "--hear", sound)
        seen = run(*words, "--invitation", "forged")
        assert (seen.returncode, seen.stdout) == (2, "")  # nothing was heard before
        assert "not an invitation code" in seen.stderr
        assert [path for path, _ in server.requests] == [ENROL]
        run("--data", tmp_path, "--server", server.url, "--invitation", "welcome", "--once")
        server.trap = lambda path, body: problem(500, "internal", "nothing was changed")
        with running("--data", tmp_path, "--server", server.url, "--poll", "0.01") as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            server.trap = lambda path, body: None
            lines.append(process.stdout.readline())
    assert lines == [
        "is enrolled as phone 1\n",
        "trouble: internal: nothing was changed\n",
        "waiting: nothing to do now; no phase has begun for this phone\n",
    ]
    assert {path for path, _ in server.requests[2:]} == {TASK}


def test_the_package_needs_no_more_than_the_command_line(tmp_path: Path) -> None:
    blocked = ["scipy", "sklearn", "flask", "psycopg", "joblib", "soundfile", "sounddevice"]
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}));"
        f"sys.argv = ['earshot', 'phone', '--data', {str(tmp_path)!r}, '--ledger', '--json'];"
        "from earshot_client.command import main; main()"
    )
    seen = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["ledger"] == []
