"""Install each wheel with each extra into an environment of its own, and run what it carries.

    python -m support.fresh UV VERSIONS PYTHON...

UV is the program that installs; VERSIONS is `lowest`, the lower bounds of pyproject.toml, or
`locked`, those of requirements.lock. With the oldest Python each lower bound must be what is
installed: one that no wheel, or no other package, lets anybody install is not the lowest that
works.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from earshot_client.command import SUB_COMMANDS
from earshot_protocol.distribution import NAME, PHONE
from support.documented import blocks
from support.lowest import too_low
from support.release import PHONE_EXTRAS, PROJECT, ROOT, VERSION, build, lay_out, lay_out_phone

OLDEST = PROJECT["requires-python"].removeprefix(">=")
PATIENCE = 900.0
"""Seconds for an installation or a command."""

OWN_ENCODER = """
import numpy as np
from earshot_client import Client

class Own:
    name, dimensions = "own-1", 128

    def embed(self, samples):
        return self.project(np.abs(samples[:, :128]) + 1e-9, 128)

    def project(self, embeddings, dimensions):
        kept = np.asarray(embeddings[:, :dimensions], np.float32)
        return kept / np.linalg.norm(kept, axis=1, keepdims=True)

sound = np.random.default_rng(1).normal(0, 0.1, 16_000)
with Client.open("phone.db", key=bytes(32), server="https://a.example", encoder=Own()) as client:
    client.phone.hear(sound, 16_000)
    assert len(client.phone.recordings()) == 1
"""
PROOFS = "from earshot_protocol.prio3 import xof; xof.derive_seed(bytes(32), b'', b'')"
SHIPPED_ENCODER = blocks((ROOT / "README.md").read_text("utf-8"), "python")[0]
SWEEP = 'seeds = [1]\n[grid]\nphones = [30, 40]\nrecordings = [5]\npolicy = ["anything"]\n'
TINY = ("--synthesized", "1", "--steps", "2", "--batch", "8", "--width", ".25")
CROWD = ("--phones", "30", "--recordings", "5", "--policy", "anything")


class Case(NamedTuple):
    """An environment: what is installed, and commands that are run in it.

    Attributes:
        distribution: Name of one of our distributions.
        extras: Its extras.
        examples: Words of commands; `python` and `earshot` are the environment's.
    """

    distribution: str
    extras: tuple[str, ...]
    examples: tuple[tuple[str, ...], ...]

    @property
    def requirements(self) -> set[str]:
        """What pyproject.toml asks for, with extras of ours expanded."""
        found, waiting = set(PROJECT["dependencies"]), list(self.extras)
        while waiting:
            for line in PROJECT["optional-dependencies"][waiting.pop()]:
                if line.startswith(NAME):
                    waiting += Requirement(line).extras
                else:
                    found.add(line)
        return found


WHOLE = (
    Case(NAME, (), (("python", "-c", OWN_ENCODER),)),
    Case(NAME, ("phone",), (("python", "-c", SHIPPED_ENCODER),)),
    Case(NAME, ("microphone",), (("python", "-c", SHIPPED_ENCODER),)),
    Case(NAME, ("proofs",), (("python", "-c", PROOFS),)),
    Case(
        NAME,
        ("server",),
        (
            ("python", str(ROOT / "deploy/attempt.py"), "."),
            ("earshot", "budget", "--phones", "3000", "--epsilon", "1"),
        ),
    ),
    Case(
        NAME,
        ("models",),
        (("earshot", "train", "--out", "ears", *TINY),),
    ),
    Case(
        NAME,
        ("simulations",),
        (
            ("earshot", "simulate", *CROWD, "--out", "run"),
            ("earshot", "pate", "example", "votes"),
        ),
    ),
    Case(NAME, ("tables",), (("python", "-c", "import pandas, pyarrow"),)),
    Case(NAME, ("simulations", "tables"), (("earshot", "sweep", "sweep.toml", "--out", "out"),)),
    Case(NAME, ("simulations", "models"), ()),
    Case(NAME, ("simulations", "proofs"), ()),
    Case(NAME, ("simulations", "server", "browsers"), ()),
    Case(
        NAME,
        ("cluster",),
        (("earshot", "simulate", *CROWD, "--engine", "ray", "--out", "run"),),
    ),
    Case(NAME, ("browsers",), (("python", "-c", "import playwright.sync_api"),)),
)
CASES = (
    *(case._replace(distribution=PHONE) for case in WHOLE if set(case.extras) <= set(PHONE_EXTRAS)),
    *WHOLE,
)


class FailedError(Exception):
    """A program failed; the message is what it said."""


def main(uv: Path, versions: str, pythons: Sequence[Path]) -> None:
    """Try every case with every Python, print a line for each, and exit with those that failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        lay_out(scratch / NAME)
        lay_out_phone(scratch / NAME, scratch / PHONE)
        for distribution in (NAME, PHONE):
            build(scratch / distribution, scratch / "built")
        for python in pythons:
            for case in CASES:
                what = f"{case.distribution}[{','.join(case.extras)}]".removesuffix("[]")
                print(f"{python}, {versions}, {what}: ", end="", flush=True)
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    try:
                        print("; ".join(tried(case, uv, versions, python, scratch, Path(folder))))
                    except FailedError as error:
                        failed += 1
                        print(f"FAILED\n{error}")
    sys.exit(f"{failed} failed" if failed else 0)


def tried(
    case: Case, uv: Path, versions: str, python: Path, built: Path, folder: Path
) -> Iterator[str]:
    """Install a case and run it in a folder; yield what that took."""
    environment = folder / "environment"
    programs = environment / "bin"
    begun = time.monotonic()
    run(folder, uv, "venv", "--quiet", "--no-project", "--python", python, environment)
    install = (uv, "pip", "install", "--quiet", "--no-config", "--python", programs / "python")
    chosen = ["--resolution", "lowest-direct"]
    if versions == "locked":
        (folder / "pins").write_text("\n".join(pins()), "utf-8")
        chosen = ["--constraint", "pins"]
    extras = (word for extra in case.extras for word in ("--extra", extra))
    asked = built / case.distribution / "pyproject.toml"
    run(folder, *install, "--only-binary", ":all:", *chosen, "-r", asked, *extras)
    (wheel,) = (built / "built").glob(f"{case.distribution.replace('-', '_')}-*.whl")
    run(folder, *install, "--no-deps", wheel)
    yield f"installed in {time.monotonic() - begun:.0f} s"
    (packages,) = environment.glob("lib/python*/site-packages")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    yield f"{size / 1e6:.0f} MB"
    if versions == "lowest" and packages.parent.name == f"python{OLDEST}":
        wrong = too_low(case.requirements, packages)
        if wrong:
            raise FailedError("\n".join(wrong))
    begun = time.monotonic()
    if (said := run(folder, programs / "earshot", "--version").strip()) != VERSION:
        raise FailedError(f"earshot --version: {said}")
    run(folder, programs / "earshot", "--help")
    commands = [
        name
        for name, command in SUB_COMMANDS.items()
        if command.package != "studies"
        and Case(NAME, command.extras, ()).requirements <= case.requirements
    ]
    (folder / "sweep.toml").write_text(SWEEP, "utf-8")
    for command in commands:
        run(folder, programs / "earshot", command, "--help")
    for program, *words in case.examples:
        run(folder, programs / program, *words)
    yield f"ran {len(commands)} commands' help, {len(case.examples)} examples"
    yield f"in {time.monotonic() - begun:.0f} s"


def pins() -> list[str]:
    """Return the lock's versions as constraints, which have neither extras nor digests."""
    lock = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    entries = (line.removesuffix(" \\") for line in lock if re.match(r"\w", line))
    return [re.sub(r"\[.*?\]", "", entry, count=1) for entry in entries]


def run(folder: Path, *words: str | Path) -> str:
    """Run a program in a folder, with a home there, and return what it prints.

    Raises:
        FailedError: Its status is not 0, or it takes too long.
    """
    kept = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR", "UV_CACHE_DIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment.setdefault("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))
    try:
        done = subprocess.run(  # noqa: S603 - with our own words
            words,
            cwd=folder,
            env={**environment, "HOME": str(folder)},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"{' '.join(map(str, words))}: takes too long") from None
    if done.returncode:
        raise FailedError(
            f"{' '.join(map(str, words))}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2], [Path(each) for each in sys.argv[3:]])
