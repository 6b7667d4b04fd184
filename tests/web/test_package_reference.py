"""The reference of the package: all that it exports, each with a comment."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from support.node import PACKAGE, node
from support.package_exports import Module, modules


@pytest.fixture(scope="module")
def found() -> list[Module]:
    return modules()


def test_every_module_of_the_package_is_there(found: list[Module]) -> None:
    exports = json.loads((PACKAGE / "package.json").read_text("utf-8"))["exports"]
    typed = [name for name, entry in exports.items() if "types" in entry]
    assert [each.name for each in found] == [f"earshot-phone{name[1:]}" for name in typed]


def test_every_value_and_type_that_is_exported_is_listed(found: list[Module]) -> None:
    for module, source in zip(found[:3], ("index", "hearing", "testing"), strict=True):
        listed = [each.name for each in module.exports]
        path = PACKAGE / f"{source}.ts"
        names = f"console.log(JSON.stringify(Object.keys(await import({str(path)!r}))))"
        run = subprocess.run(  # noqa: S603 - Node of the wheel
            [node(), "--input-type=module", "--eval", names],
            capture_output=True,
            text=True,
            check=True,
        )
        values = {
            each.name
            for each in module.exports
            if not re.match("interface |type ", each.declaration)
        }
        assert values == set(json.loads(run.stdout))
        types = re.findall(r"\btype (\w+)|export type \{ (\w+) \}", path.read_text("utf-8"))
        assert {"".join(each) for each in types} <= set(listed)
        assert len(listed) == len(set(listed))


def test_every_export_has_a_comment_and_hides_what_is_private(found: list[Module]) -> None:
    every = [each for module in found for each in module.exports]
    assert len(every) > 40
    assert [each.name for each in every if not each.comment] == []
    assert all(module.comment for module in found)
    assert not any(re.search(r"#private|\bprivate ", each.declaration) for each in every)
    (client,) = [each for each in every if each.name == "Client"]
    assert client.comment.startswith("A phone of one server.")
    assert "    /** Close the store; the next call opens it again. */\n    close(): void;" in (
        client.declaration
    )
