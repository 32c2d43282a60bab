"""The command line, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from paretone import cli, models
from paretone.models.base import SpeechModel

_LOAD = models.load_model
_LOADED: dict[tuple, SpeechModel] = {}


def loaded(name: str, **more: object) -> SpeechModel:
    """In place of :func:`models.load_model`: every model is loaded once for all tests of a process."""
    key = name, *sorted((one, str(value)) for one, value in more.items() if one in ("folder", "variant"))
    if key not in _LOADED:
        _LOADED[key] = _LOAD(name, **more)
    return _LOADED[key]


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of one run of the command line."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict:
        """The one object on standard output."""
        return json.loads(self.out)


def runner(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Takes arguments, and returns what came out."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            code = cli.main([str(one) for one in arguments])
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
