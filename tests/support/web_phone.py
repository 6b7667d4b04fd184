"""The phone in TypeScript, asked from Python: a Node that answers a line for a line."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any, Self

from support.node import TESTS, node


class WebPhoneError(Exception):
    """The phone's own error, by the name of its class, and the rule of a refusal."""

    def __init__(self, name: str, rule: str | None) -> None:
        super().__init__(name)
        self.name = name
        self.rule = rule


class WebPhone:
    """A process of Node with `tests/web/oracle.ts`, or another script that says what can be asked.

    Args:
        script: Name of the script.
    """

    def __init__(self, script: str = "oracle.ts") -> None:
        self._script = script

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - Node of the wheel
            [node(), TESTS / self._script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=300)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def ask(self, name: str, *given: Any) -> Any:
        """The phone's answer.

        Raises:
            WebPhoneError: the phone refuses, or is broken.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps([name, *given], default=lambda value: value.hex(), allow_nan=False)
        print(request, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise WebPhoneError("Node has ended", None)
        answer = json.loads(line)
        if "error" in answer:
            raise WebPhoneError(answer["error"], answer["rule"])
        return answer.get("is")
