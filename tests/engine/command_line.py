"""The command line, run in this process."""

import json
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
    code: int
    out: str
    err: str

    @property
    def data(self) -> dict:
        """The one object on standard output."""
        return json.loads(self.out)


class Console:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._capsys.readouterr()
        try:
            code = cli.main([str(one) for one in arguments])
        except SystemExit as exit_:
            code = exit_.code
        return Outcome(code, *self._capsys.readouterr())

    def out(self, *arguments: object) -> str:
        done = self(*arguments)
        assert done.code == 0, done.err
        return done.out

    def data(self, *arguments: object) -> dict:
        """The one object on standard output of a command that succeeds."""
        return json.loads(self.out(*arguments))

    def refusal(self, *arguments: object, code: int | None = None) -> str:
        """Standard error of a command that fails, with ``code`` if given."""
        done = self(*arguments)
        assert done.code == code if code else done.code, done.out
        return done.err
