"""OpenAPI document, generated from the message types.

`python -m earshot_server.api.openapi` prints it; docs/openapi.json is a copy of the output.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from earshot_protocol import api, distribution
from earshot_protocol.api import (
    JSON,
    MESSAGEPACK,
    PHASES,
    PROBLEM,
    PROBLEM_PREFIX,
    RESULTS,
    Problem,
)
from earshot_protocol.messages import AnyAnswer, AnyTask
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_server.api.health import LIVE, READY
from earshot_server.api.metrics import PATH as METRICS
from earshot_server.api.problems import FIELDS_TOO_LARGE, HTTP_KINDS, KINDS, VERSION
from earshot_server.api.views import (
    Audit,
    CampaignExport,
    CampaignView,
    CampaignViews,
    Cohorts,
    Histograms,
    Invitations,
    NewOperator,
    Operators,
    OperatorToken,
    PhaseExport,
    Phases,
    PhaseView,
    PhoneCounts,
    PrivacySpent,
    Results,
    StartCampaign,
    Started,
    Stopped,
    TwoOperators,
)
from earshot_server.store.operators import Role

Schema = dict[str, Any]

_PHONE = "phone"
_OPERATOR = "operator"
_TEXT = "text/plain"
_REFERENCE = "#/components/schemas/{name}"


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    Attributes:
        method: HTTP method, in lower case.
        path: Path, with the names of its parameters in braces.
        summary: Summary, one sentence.
        caller: Kind of caller whose credentials it needs; empty if it needs none.
        takes: Type of the request's body; None if it has none.
        gives: Type of the response's body; None if it has none, `dict` for any JSON object, `str`
            for plain text.
        status: HTTP status of the response.
        problem: Status of a problem beyond those that all operations of its kind have.
        query: Query parameters, and the pattern of each.
        role: Role that an operator needs to call it.
    """

    method: str
    path: str
    summary: str
    caller: str = ""
    takes: Any = None
    gives: Any = None
    status: int = 200
    problem: int | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    role: Role = Role.VIEWER

    @property
    def name(self) -> str:
        """Unique name of the operation: its summary up to a colon, hyphenated."""
        return self.summary.partition(":")[0].replace(" ", "-").lower()

    def problems(self) -> set[int]:
        """Return the statuses of the problems that it may respond with."""
        statuses = {429, 503}
        if self.path.startswith("/v1/"):  # its response's format is negotiated
            statuses.add(406)
        if self.caller:
            statuses.add(401)
        if self.takes is not None:
            statuses |= {400, 408, 413, 415}
        if self.role is not Role.VIEWER:
            statuses.add(403)
        if "{" in self.path:
            statuses.add(404)
        return statuses | {self.problem} if self.problem else statuses


_ONE = PHASES + "/{phase}"
_ONE_CAMPAIGN = api.CAMPAIGNS + "/{campaign}"
_ONE_OPERATOR = api.OPERATORS + "/{operator}"
_PATH_PARAMETERS = {
    "phase": "^[0-9a-f]{32}$",
    "campaign": "^[0-9a-f]{64}$",
    "operator": "^[a-z][a-z0-9._-]{0,31}$",
    "invitation": "^[a-z0-9][a-z0-9._-]{0,31}$",
    "phone": "^[1-9][0-9]{0,17}$",
}

OPERATIONS = (
    Operation(
        "post",
        api.ENROL,
        "Enrol: register a phone's key",
        _PHONE,
        api.Enrol,
        api.Enrolled,
        problem=403,
    ),
    Operation("post", api.TASK, "Ask for a task", _PHONE, api.AskTask, AnyTask),
    Operation(
        "post",
        api.ANSWER,
        "Answer: send the answer to a task",
        _PHONE,
        AnyAnswer,
        status=204,
        problem=409,
    ),
    Operation(
        "post",
        api.REFUSAL,
        "Refuse: report the rule by which a phone refuses its phase",
        _PHONE,
        api.Refuse,
        status=204,
        problem=409,
    ),
    Operation(
        "post",
        api.LEAVE,
        "Leave: delete everything about this phone",
        _PHONE,
        api.Leave,
        status=204,
    ),
    Operation("get", RESULTS, "List results", gives=Results),
    Operation("get", RESULTS + "/{phase}", "Read a result", gives=Result | Discovered | Labelled),
    Operation("get", api.STATISTICS, "List statistics", gives=Histograms),
    Operation("get", api.OPENAPI, "Read this document", gives=dict),
    Operation(
        "post",
        api.INVITATIONS,
        "Invite: sign an invitation code",
        _OPERATOR,
        api.Invite,
        api.Invitation,
        problem=409,
        role=Role.OPERATOR,
    ),
    Operation(
        "get",
        api.INVITATIONS,
        "List invitations: names and states, without codes",
        _OPERATOR,
        gives=Invitations,
    ),
    Operation(
        "delete",
        api.INVITATIONS + "/{invitation}",
        "Revoke an invitation: no more phones enrol with it",
        _OPERATOR,
        status=204,
        problem=409,
        role=Role.OPERATOR,
    ),
    Operation(
        "post",
        PHASES,
        "Start a phase",
        _OPERATOR,
        api.StartPhase,
        Started,
        201,
        422,
        role=Role.OPERATOR,
    ),
    Operation(
        "get",
        PHASES,
        "List phases",
        _OPERATOR,
        gives=Phases,
        problem=400,
        query={"prefix": "^[0-9a-f]{1,32}$"},
    ),
    Operation("get", api.COHORTS, "List cohorts", _OPERATOR, gives=Cohorts),
    Operation("get", _ONE, "Read a phase", _OPERATOR, gives=PhaseView),
    Operation(
        "post",
        _ONE + "/begin",
        "Begin a phase: with the phones that have joined, before its gathering is over",
        _OPERATOR,
        gives=PhaseView,
        problem=409,
        role=Role.OPERATOR,
    ),
    Operation(
        "post",
        _ONE + "/stop",
        "Stop a phase",
        _OPERATOR,
        gives=Stopped,
        problem=409,
        role=Role.OPERATOR,
    ),
    Operation(
        "get",
        _ONE + "/export",
        "Export a phase: everything stored about it",
        _OPERATOR,
        None,
        PhaseExport,
    ),
    Operation(
        "post",
        api.CAMPAIGNS,
        "Start a campaign: its phases then open by themselves",
        _OPERATOR,
        StartCampaign,
        CampaignView,
        201,
        422,
        role=Role.OPERATOR,
    ),
    Operation("get", api.CAMPAIGNS, "List campaigns", _OPERATOR, gives=CampaignViews),
    Operation(
        "get",
        _ONE_CAMPAIGN,
        "Read a campaign: its plan, and what became of its phases",
        _OPERATOR,
        gives=CampaignExport,
    ),
    Operation(
        "post",
        _ONE_CAMPAIGN + "/stop",
        "Stop a campaign: for good",
        _OPERATOR,
        gives=CampaignView,
        role=Role.OPERATOR,
    ),
    Operation(
        "post",
        _ONE_CAMPAIGN + "/resume",
        "Resume a campaign: one that was paused when the server was restored",
        _OPERATOR,
        gives=CampaignView,
        problem=409,
        role=Role.OPERATOR,
    ),
    Operation(
        "get",
        api.PRIVACY,
        "Read the privacy spent: by phones in all phases",
        _OPERATOR,
        gives=PrivacySpent,
    ),
    Operation(
        "get",
        api.TWO_OPERATORS,
        "Read the two operators: the keys that apps pin",
        _OPERATOR,
        gives=TwoOperators,
    ),
    Operation("get", api.ENROL, "Count phones", _OPERATOR, gives=PhoneCounts),
    Operation(
        "delete",
        api.ENROL + "/{phone}",
        "Erase a phone: delete everything about it",
        _OPERATOR,
        status=204,
        role=Role.ADMIN,
    ),
    Operation(
        "get",
        api.OPERATORS,
        "List operators",
        _OPERATOR,
        gives=Operators,
        role=Role.ADMIN,
    ),
    Operation(
        "post",
        api.OPERATORS,
        "Add an operator",
        _OPERATOR,
        NewOperator,
        OperatorToken,
        201,
        409,
        role=Role.ADMIN,
    ),
    Operation(
        "delete",
        _ONE_OPERATOR,
        "Remove an operator",
        _OPERATOR,
        status=204,
        problem=409,
        role=Role.ADMIN,
    ),
    Operation(
        "post",
        _ONE_OPERATOR + "/token",
        "Rotate a token: give an operator a new one",
        _OPERATOR,
        gives=OperatorToken,
        problem=409,
        role=Role.ADMIN,
    ),
    Operation(
        "get",
        api.AUDIT,
        "Read the audit log",
        _OPERATOR,
        gives=Audit,
        problem=400,
        query={"before": "^[0-9]{1,18}$"},
        role=Role.ADMIN,
    ),
    Operation("get", LIVE, "Live: whether the process answers", gives=dict),
    Operation("get", READY, "Ready: whether threads, database and disk can serve", gives=dict),
    Operation("get", METRICS, "Metrics: figures for Prometheus", _OPERATOR, gives=str),
)
"""All operations of the API, and nothing else."""

_SIGNATURE = (
    "HTTP Message Signatures (RFC 9421) with Ed25519 over `@method`, `@path`, `content-type` and "
    "`content-digest` (RFC 9530), label `earshot`, parameters `created`, `keyid` and `alg`, at "
    "most 300 seconds old. `keyid` is the name that the enrolment gave; for the enrolment, `new`."
)
_BEARER = (
    "An operator's token. Requests that change nothing may also send name and token as user and "
    "password of HTTP Basic. The role `viewer` may read, `operator` also invite, start and stop, "
    "`admin` also manage operators and erase phones."
)
_ABOUT = (
    "Phones enrol, ask for tasks and send answers; operators start and watch phases; results are "
    "public. Bodies are MessagePack or JSON, by their content type; in JSON, bytes are base64. If "
    "the operator has configured origins of pages that hold phones, the paths that phones call "
    "also answer `OPTIONS`, and their `Access-Control-…` fields allow these origins to call them "
    "and to read `Retry-After`; no other path does. Every error is a problem (RFC 9457) whose "
    "`type` is one of: "
)


def document() -> Schema:
    """Return the document (OpenAPI 3.1), as JSON types."""
    known = (*KINDS.values(), *HTTP_KINDS.values(), FIELDS_TOO_LARGE, VERSION)
    kinds = [*dict.fromkeys(PROBLEM_PREFIX + kind.name for kind in known)]
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Earshot",
            "version": distribution.version(),
            "description": _ABOUT + ", ".join(f"`{kind}`" for kind in kinds) + ".",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _components(),
            "securitySchemes": {
                _PHONE: {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Signature",
                    "description": _SIGNATURE,
                },
                _OPERATOR: {"type": "http", "scheme": "bearer", "description": _BEARER},
            },
        },
    }


def _types() -> tuple[Any, ...]:
    bodies = [kind for each in OPERATIONS for kind in (each.takes, each.gives)]
    return tuple(kind for kind in (*bodies, Problem) if kind not in (None, dict, str))


def _components() -> dict[str, Schema]:
    _, schemas = msgspec.json.schema_components(_types(), ref_template=_REFERENCE)
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = inspect.cleandoc(schema["description"])
    # Defaults are tuples; encoding turns them into JSON arrays.
    plain: dict[str, Schema] = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain


def _schema(kind: Any) -> Schema:
    if kind is dict:
        return {"type": "object"}
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schema


def _operation(operation: Operation) -> Schema:
    described: Schema = {"operationId": operation.name, "summary": operation.summary}
    parameters = [_parameter(name, "query", pattern) for name, pattern in operation.query.items()]
    parameters += [
        _parameter(name, "path", pattern)
        for name, pattern in _PATH_PARAMETERS.items()
        if f"{{{name}}}" in operation.path
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.takes)}
    if operation.role is not Role.VIEWER:
        described["description"] = f"For operators of the role `{operation.role.value}`."
    if operation.caller:
        described["security"] = [{operation.caller: []}]
    described["responses"] = _responses(operation)
    return described


def _parameter(name: str, place: str, pattern: str) -> Schema:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _content(kind: Any) -> Schema:
    schema = {"schema": _schema(kind)}
    return {JSON: schema} if kind is dict else {JSON: schema, MESSAGEPACK: schema}


def _responses(operation: Operation) -> Schema:
    done: Schema = {"description": "Done"}
    if operation.gives is str:
        done["content"] = {_TEXT: {"schema": {"type": "string"}}}
    elif operation.gives is not None:
        done["content"] = _content(operation.gives)
    problem = {"description": "A problem", "content": {PROBLEM: {"schema": _schema(Problem)}}}
    problems = {str(status): problem for status in sorted(operation.problems())}
    return {str(operation.status): done} | problems


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(document()), indent=2).decode())
