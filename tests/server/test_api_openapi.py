"""The OpenAPI document: valid, current, complete, and true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from support.api_caller import Server

from earshot_protocol.api import OPENAPI
from earshot_server.api.openapi import document
from earshot_server.api.problems import HTTP_KINDS, KINDS

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def test_it_is_valid_openapi() -> None:
    validate(document(), cls=OpenAPIV31SpecValidator)


def test_the_copy_in_the_documentation_is_what_the_module_prints() -> None:
    # S603: the program is written here.
    run = subprocess.run(
        [sys.executable, "-m", "earshot_server.api.openapi"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert run.stdout == CHECKED_IN.read_text(encoding="utf-8")
    assert json.loads(run.stdout) == document()


def test_it_is_served(server: Server) -> None:
    response = server.get(OPENAPI)
    assert response.get_json() == document()
    assert response.headers["Cache-Control"] == "public, max-age=60"


def test_it_describes_every_endpoint_and_no_other(server: Server) -> None:
    served = {
        (re.sub(r"<(\w+):\w+>", r"{\1}", rule.rule), method.lower())
        for rule in server.app.url_map.iter_rules()
        if not rule.endpoint.startswith(("dashboard.", "desk."))
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {
        (path, method) for path, methods in document()["paths"].items() for method in methods
    }
    assert described == served


def test_every_kind_of_problem_is_named_once() -> None:
    kinds = {*KINDS.values(), *HTTP_KINDS.values()}
    assert len({kind.name for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert f"`urn:earshot:problem:{kind.name}`" in document()["info"]["description"]


def test_operations_have_names_of_their_own() -> None:
    names = [
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
    ]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
