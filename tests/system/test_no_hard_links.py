"""Commands where `os.link` is missing, as in Android's Python, or refused, as on exFAT."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = "import os\ndel os.link\n"
REFUSED = """
import os
def link(*_, **__):
    raise OSError({number}, os.strerror({number}))
os.link = link
"""
USED = "import pathlib; pathlib.Path(__file__).with_name('used').touch()\n"
SYSTEMS = {
    "Android's Python": MISSING,
    "Android's kernel": REFUSED.format(number=13),
    "exFAT": REFUSED.format(number=1),
    "a share": REFUSED.format(number=95),
}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_phones_and_helpers_are_made_and_ledgers_recovered(system: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SYSTEMS[system] + USED)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    def run(*words: object) -> str:
        done = subprocess.run(  # noqa: S603
            [Path(sys.executable).with_name("earshot"), *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    phone, helper = tmp_path / "phone", tmp_path / "helper"
    run("phone", "--data", phone, "--server", "http://127.0.0.1:9", "--ledger")
    assert (tmp_path / "used").exists()
    assert {each.name for each in phone.iterdir()} == {"phone.db", "phone.db-journal", "phone.key"}
    (phone / "phone.db").write_bytes(os.urandom(9000))
    assert "0 entries could be read" in run("ledger", "--data", phone, "--recover")
    assert len(list(phone.glob("phone.db.damaged-1"))) == 1
    run("helper", "init", "--data", helper)
    assert list(helper.iterdir())
    assert not list(helper.rglob(".*"))
