"""Compiled backbones: the same results, and going on without where compiling fails. Compiling itself takes minutes and
a compiler: a back end of torch that compiles nothing stands in for it. Capturing, and all around it, is real."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from engine import device
from engine.knobs import Values
from engine.models import compiled
from engine.models.base import whole
from engine.observers import SilentObserver
from engine.setting import Engaged, Setting
from engine.techniques import technique
from tests.engine import small_speech

COMPILED = Engaged("compilation", Values(mode="default"))


def spoken(model, setting: Setting):
    return whole(model.synthesise("One sentence.", small_speech.VOICE, setting, (), SilentObserver()))


def small():
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)


def test_compiled_evaluations_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    modes, real = [], torch.compile

    def compiling(function: Callable, mode: str | None = None) -> Callable:
        modes.append(mode)
        return real(function, backend="eager")

    monkeypatch.setattr(compiled.torch, "compile", compiling)
    plain = small_speech.setting(3)
    expected = spoken(small(), plain)
    found = spoken(small(), plain.with_technique(COMPILED))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert modes == [None]
    assert found.notes == expected.notes


def test_what_cannot_be_compiled_runs_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(function: Callable, mode: str | None = None) -> Callable:
        def call(*arguments: object) -> torch.Tensor:
            raise RuntimeError("no kernel for this\nand more")

        return call

    monkeypatch.setattr(compiled.torch, "compile", failing)
    plain = small_speech.setting(3)
    model = small()
    found = spoken(model, plain.with_technique(COMPILED))
    np.testing.assert_allclose(found.samples, spoken(small(), plain).samples, atol=1e-6)
    assert any(note.startswith("Compiling failed (no kernel for this), so") for note in found.notes)
    assert not any("Compiling" in note for note in spoken(model, plain.with_technique(COMPILED)).notes), "said once"


def test_memory_that_is_short_is_no_failure_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*arguments: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(compiled.torch, "compile", lambda function, mode=None: short)
    function = compiled.Compiled(lambda: torch.zeros(1), "default")
    with pytest.raises(torch.OutOfMemoryError):
        function()


def test_devices_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.shutil, "which", lambda name: None)
    assert "needs a C++ compiler" in dict(device.lacking("cpu"))["compilation"]
    monkeypatch.setattr(device.shutil, "which", lambda name: "/usr/bin/g++")
    assert set(dict(device.lacking("cpu"))) == {"graphs"}
    assert set(dict(device.lacking("mps"))) == {"graphs", "compilation"}


def test_whole_numbers_are_not_compiled() -> None:
    setting = Setting("small").with_technique(Engaged("precision", Values(precision="int8"))).with_technique(COMPILED)
    assert "cannot be compiled" in technique("compilation").conflict(setting)
