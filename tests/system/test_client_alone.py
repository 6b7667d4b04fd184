"""The client with what its extras bring, and nothing else, talks to a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.closure import distributions, link
from support.documented import blocks
from support.networked import ServerProcess

import earshot_client
import earshot_protocol
from earshot_client.encoder import default_encoder
from earshot_protocol.api import Invite

ROOT = Path(__file__).parents[2]
CORE = {"numpy", "cryptography", "msgspec", "cffi", "pycparser"}
MOST_RESIDENT = 120 * 2**20

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from earshot_client import Client

class Loudness:
    name, dimensions = "%s", 128

    def embed(self, samples):
        power = (samples.reshape(len(samples), 125, 64)[:, :, :1] ** 2).sum(axis=2)
        power = np.pad(power, ((0, 0), (0, 3))) + 1e-9
        return (power / np.linalg.norm(power, axis=1, keepdims=True)).astype(np.float32)

    def project(self, embeddings, dimensions):
        kept = embeddings[:, :dimensions]
        return kept / np.linalg.norm(kept, axis=1, keepdims=True)

server, code, folder, own = sys.argv[1:]
encoder = Loudness() if own == "own" else None
with Client.open(
    Path(folder) / "phone.db", key=bytes(32), server=server, invitation=code, encoder=encoder
) as client:
    client.phone.hear(np.random.default_rng(1).normal(0, 0.1, 16_000), 16_000)
    print(client.visit().event, client.enrolled)
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) * 1024)
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def clean_environment(folder: Path, names: set[str]) -> None:
    """A folder with these packages and our own, and no others."""
    link(folder, names)
    for package in (earshot_protocol, earshot_client):
        (folder / package.__name__).symlink_to(Path(str(package.__file__)).parent)


def test_the_core_install_is_small() -> None:
    assert distributions() <= CORE


def test_a_phone_gets_neither_the_training_nor_the_servers_libraries() -> None:
    brought = distributions("phone")
    assert "ai-edge-litert" in brought
    assert brought.isdisjoint({"tensorflow", "keras", "scipy", "pandas", "scikit-learn", "flask"})
    assert len(brought) < 30


@pytest.mark.parametrize("page", ["README.md", "docs/embedding.md"])
def test_the_program_for_apps_needs_what_the_line_above_it_installs(
    page: str, tmp_path: Path
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    program = blocks(text, "python")[0]
    extras = re.findall(r"pip install '?[\w.-]+(?:\[(\w+)\])?", text.partition(program)[0])[-1]
    packages = tmp_path / "packages"
    packages.mkdir()
    clean_environment(packages, distributions(*filter(None, [extras])))
    start = f"import sys; sys.path.append({str(packages)!r})\n"
    run = subprocess.run(  # noqa: S603 - the program of the page
        [sys.executable, "-I", "-S", "-c", start + program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["own", "shipped"])
def test_the_client_alone_enrols_and_takes_part(tmp_path: Path, encoder: str) -> None:
    names = distributions() if encoder == "own" else distributions("phone")
    packages = tmp_path / "packages"
    packages.mkdir()
    clean_environment(packages, names)
    name = default_encoder().name
    with ServerProcess(tmp_path / "server") as server:
        code = server.operator().invite(Invite()).code
        run = subprocess.run(  # noqa: S603 - the program above
            [
                *(sys.executable, "-I", "-S", "-c"),
                f"import sys; sys.path.append({str(packages)!r})\n{PROGRAM % name}",
                *(server.address, code, str(tmp_path), encoder),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert run.returncode == 0, run.stderr
    took_part, resident, loaded = run.stdout.splitlines()
    assert took_part == "waiting True"
    assert int(resident) <= MOST_RESIDENT
    strangers = {name for name in loaded.split() if not name.startswith("_")} - {"cython_runtime"}
    allowed = {top.replace("-", "_").replace("backports.strenum", "backports") for top in names}
    assert strangers <= allowed | {"earshot_client", "earshot_protocol"}
