"""Compiled forwards: the same results, and going on without where compiling fails.

A small masked network is compiled for real where there is a compiler. Whole models take minutes: a back end of torch
that compiles nothing stands in for it there. Capturing, and all around it, is real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone import device
from paretone.models.kernels import compiled
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.observer import Observer
from paretone.sampling.demasking import Guide
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import conflict, problem
from tests.engine import small_speech, speaking
from tests.engine.models.omnivoice import small_release
from tests.engine.small_language import write_model
from tests.workload import only_in_full, workload

COMPILED = UsedTechnique("compilation", Values(mode="default"))
needs_compiler = pytest.mark.skipif(device.compiler() is None, reason="there is no C++ compiler")


def spoken(model, setting: Setting):
    return synthesise(model, "One sentence.", small_speech.VOICE, setting)


def small(variant: str = ""):
    return small_speech.load("small", "", variant, "cpu", lambda text: None, lambda: None)


@pytest.fixture
def fresh_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing that was compiled before is found again, and no thread of the compiler's stays."""
    import torch._inductor.config as inductor
    from torch._inductor import cpu_vec_isa as processors

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    torch._dynamo.reset()
    # What the compiler can is known; trial programs would take as long as the network. Matrix extensions are tried out
    # all the same, so it does without.
    plain = [one for one in processors.supported_vec_isa_list if type(one).__bool__ is processors.VecISA.__bool__]
    monkeypatch.setattr(processors, "supported_vec_isa_list", plain)
    with inductor.patch({"compile_threads": 1, "cpp.vec_isa_ok": True}):
        yield
    torch._dynamo.reset()


@pytest.fixture
def captured_only(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Functions to be compiled are only captured; returns the requested modes."""
    modes, real = [], torch.compile

    def compiling(function: Callable, mode: str | None = None) -> Callable:
        modes.append(mode)
        return real(function, backend="eager")

    monkeypatch.setattr(compiled.torch, "compile", compiling)
    return modes


def masked_run(network: FusedMasked) -> tuple[MaskedRun, torch.Tensor]:
    """A run of a canvas of five frames after two tokens, and the canvas."""
    config = network.config
    codes = torch.full((config.codebooks, 5), config.mask)
    return network.begin(MaskedRequest(torch.tensor([1, 2]), codes[:, :0], 5), 2.0), codes


@pytest.fixture
def network() -> FusedMasked:
    """A masked network of one layer with random weights."""
    sizes = small_release.CONFIG["llm_config"] | {"num_hidden_layers": 1}
    torch.manual_seed(0)
    return FusedMasked.of(MaskedNetwork(MaskedConfig.read(small_release.CONFIG | {"llm_config": sizes})).eval())


@only_in_full("compiled code")
@needs_compiler
@pytest.mark.slow
def test_a_masked_network_is_compiled(fresh_compiler: None, tmp_path: Path, network: FusedMasked) -> None:
    made = compiled.compiled_masked(network, "default")
    (plain, codes), (run, _) = masked_run(network), masked_run(made)
    for _ in range(2):
        expected = plain.scores(codes, 0, 5, Guide.BOTH)
        torch.testing.assert_close(run.scores(codes, 0, 5, Guide.BOTH), expected, atol=1e-4, rtol=1e-4)
    assert list((tmp_path / "compiled").rglob("*.cpp")), "the compiler was at work"
    assert not any(note.startswith("Compiling failed") for note in compiled.notes_of(made))


@only_in_full("compiled code")
def test_a_compiler_that_does_not_work_is_told_and_done_without(
    fresh_compiler: None, tmp_path: Path, network: FusedMasked
) -> None:
    import torch._inductor.config as inductor

    made = compiled.compiled_masked(network, "default")
    (plain, codes), (run, _) = masked_run(network), masked_run(made)
    with inductor.patch({"cpp.cxx": (str(tmp_path / "no-compiler"),)}):
        assert torch.equal(run.scores(codes, 0, 5, Guide.BOTH), plain.scores(codes, 0, 5, Guide.BOTH))
    (said,) = compiled.notes_of(made)
    assert said.startswith("Compiling failed (") and "so evaluations ran uncompiled" in said


@only_in_full("compiled code")
def test_masked_models_are_compiled_before_the_clock_runs(captured_only: list[str | None], tmp_path: Path) -> None:
    model = small_release.load(small_release.write_release(tmp_path / "model"))
    plain = small_release.setting(steps=4)
    expected = small_release.spoken(model, plain)
    statuses: list[str] = []
    observer = Observer()
    observer.status = statuses.append
    for _ in range(2):
        make_ready(model, plain.with_technique(COMPILED), observer=observer)
    assert statuses == [compiled.COMPILING] and captured_only == [None], "once"
    found = small_release.spoken(model, plain.with_technique(COMPILED))
    assert not any(note.startswith("Compiling failed") for note in found.notes)
    for one, other in zip(expected.trace.demasking.passages, found.trace.demasking.passages, strict=True):
        np.testing.assert_array_equal(other.codes, one.codes)


@pytest.mark.parametrize("variant", workload(["", "flat"], [""]))
def test_compiled_evaluations_say_the_same(captured_only: list[str | None], variant: str) -> None:
    plain = small_speech.setting(3)
    expected = spoken(small(variant), plain)
    found = spoken(small(variant), plain.with_technique(COMPILED))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert captured_only == [None]
    assert not any(note.startswith("Compiling failed") for note in found.notes)


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


def test_a_take_says_what_of_its_time_was_compiling(
    captured_only: list[str | None], network: FusedMasked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "WORTH_SAYING", 0.0)
    torch._dynamo.reset()
    function = compiled.Compiled(lambda x: x.cos() + 1, "default")
    monkeypatch.setattr(network, "compiled_function", function, raising=False)
    function(torch.zeros(4, 2))
    compiled.warmed(network)
    assert function._seconds == 0, "what a warm-up compiled is no take's"
    function(torch.zeros(4, 2))
    assert function._seconds == 0, "nothing is compiled again"
    function(torch.zeros(7, 2))
    assert function._seconds > 0
    (said,) = compiled.notes_of(network)
    assert said.startswith("Compiling for this length took") and "the take's times include" in said
    assert function._seconds == 0, "told once"


def test_language_models_say_why_they_are_not_compiled(tmp_path: Path) -> None:
    model = speaking.load(write_model(tmp_path / "model"))
    assert "took 1.8 times as long" in (problem(model.info, Setting("lm-mini").with_technique(COMPILED)) or "")


def test_whole_numbers_are_not_compiled() -> None:
    setting = (
        Setting("f5-mini").with_technique(UsedTechnique("precision", Values(precision="int8"))).with_technique(COMPILED)
    )
    assert "cannot be compiled" in conflict(setting, "compilation")
