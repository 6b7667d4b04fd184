"""The client with its three dependencies, and nothing else, talks to a server."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from networked import ServerProcess
from packaging.requirements import Requirement

import earshot_client
import earshot_protocol
from earshot_protocol.api import Invite

PROGRAM = """
import sys
from pathlib import Path
from earshot_client import Phone
from earshot_client.enrolment import enrol, signing_key
from earshot_client.http_transport import HttpTransport
from earshot_client.store import EncryptedStore
import numpy as np

server, code, folder = sys.argv[1:]
path, key = Path(folder) / "phone.db", bytes(range(32))
store = EncryptedStore(path, key)
transport = HttpTransport(server, signing_key(store))
enrol(store, transport, code)
store.close()
with Phone.open(path, key=key) as phone:
    phone.hear(np.random.default_rng(1).normal(0, 0.1, 16_000), 16_000)
    print(phone.take_part(transport) > 0)
transport.close()
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def core_distributions() -> set[str]:
    """What `pip install earshot` brings, by name: the closure of requirements without extras."""
    found: set[str] = set()
    waiting = ["earshot"]
    while waiting:
        for line in metadata.requires(waiting.pop()) or ():
            requirement = Requirement(line)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and requirement.name not in found:
                found.add(requirement.name)
                waiting.append(requirement.name)
    return found


def clean_environment(folder: Path) -> None:
    """A folder with the packages of the core install, and no others."""
    for name in core_distributions():
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
    for package in (earshot_protocol, earshot_client):
        (folder / package.__name__).symlink_to(Path(str(package.__file__)).parent)


def test_the_core_install_is_small() -> None:
    assert core_distributions() <= {"numpy", "cryptography", "msgspec", "cffi", "pycparser"}


def test_the_client_alone_enrols_and_takes_part(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    clean_environment(packages)
    with ServerProcess(tmp_path / "server") as server:
        code = server.operator().invite(Invite()).code
        run = subprocess.run(  # noqa: S603 - the program above
            [
                *(sys.executable, "-I", "-S", "-c"),
                f"import sys; sys.path.append({str(packages)!r})\n{PROGRAM}",
                *(server.address, code, str(tmp_path)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert run.returncode == 0, run.stderr
    took_part, loaded = run.stdout.splitlines()
    assert took_part == "True"
    strangers = {name for name in loaded.split() if not name.startswith("_")} - {"cython_runtime"}
    assert strangers <= core_distributions() | {"earshot_client", "earshot_protocol"}
