"""The cluster file and its container: nothing in them that Ray does not know."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CLUSTER = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text("utf-8"))


def schema() -> Any:
    """What Ray says that a cluster file may hold."""
    (file,) = (
        path for path in metadata.files("ray") or () if path.as_posix().endswith("ray-schema.json")
    )
    return json.loads(file.read_text("utf-8"))


def test_the_cluster_file_holds_what_ray_knows() -> None:
    import jsonschema  # not while tests are collected: it parses grammars

    # Of machines that are there already Ray takes `min_workers` too, before it looks at the schema.
    known = {name: entry for name, entry in CLUSTER.items() if name != "min_workers"}
    jsonschema.validate(known, schema())
    with pytest.raises(jsonschema.ValidationError, match="min_workerz"):
        jsonschema.validate({**known, "min_workerz": 2}, schema())


def test_all_machines_are_there_from_the_start() -> None:
    workers = len(CLUSTER["provider"]["worker_ips"])
    assert CLUSTER["min_workers"] == CLUSTER["max_workers"] == workers


def test_its_nodes_run_the_container_that_is_built_here() -> None:
    lines = (DEPLOY / "Containerfile.ray").read_text("utf-8").replace("\\\n", " ").splitlines()
    image = re.search(r"podman build -f deploy/Containerfile\.ray -t (\S+) \.", "\n".join(lines))
    assert image is not None
    assert CLUSTER["docker"]["image"] == image[1]
    instructions = [line.split(maxsplit=1) for line in lines if line and line[0] not in "# "]
    of = dict(instructions)
    assert "[cluster]" in of["RUN"]
    assert "--constraint" in of["RUN"]
    assert f"useradd --create-home {of['USER']}" in of["RUN"]


def test_its_commands_start_ray_at_one_port() -> None:
    (port,) = re.findall(r"--port=(\d+)", " ".join(CLUSTER["head_start_ray_commands"]))
    assert any(f"$RAY_HEAD_IP:{port}" in line for line in CLUSTER["worker_start_ray_commands"])
