"""Phones and operators use the same encoder by default."""

from __future__ import annotations

from earshot_client.encoder import default_encoder
from earshot_server.commands.phase.starting import Options


def test_operators_start_phases_for_the_encoder_that_phones_have() -> None:
    assert Options.encoder == default_encoder().name
