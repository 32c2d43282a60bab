"""Both ways to start the window have its threads share one heap, before there are any."""

from __future__ import annotations

import importlib

import pytest

from paretone.own_process import KERNELS


class Reached(Exception):
    """Ends the start there."""


@pytest.mark.parametrize("started", ["paretone_app.__main__", "tests.tools.endurance.__main__"])
def test_the_window_shares_one_heap_first_of_all(started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = importlib.import_module(started)
    for name in KERNELS:
        monkeypatch.setenv(name, "64")

    def stop() -> None:
        raise Reached

    monkeypatch.setattr(program, "share_one_heap", stop)
    with pytest.raises(Reached):
        program.main([])
