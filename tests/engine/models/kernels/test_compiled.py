"""Compiled forwards: the same results, and going on without where compiling fails.

A small masked network is compiled for real where there is a compiler. Whole models take minutes: a back end of torch
that compiles nothing stands in for it there. Capturing, and all around it, is real.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from paretone import device
from paretone.models import load_model
from paretone.models.families.language_network import FeatureDrafter, TokenModel
from paretone.models.kernels import compiled, few_rows, fused_causal
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from paretone.models.kernels.one_call import Layers
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.observer import Observer
from paretone.sampling.cache import KeyValueCache
from paretone.sampling.demasking import Guide
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Nucleus, Uniforms
from paretone.sampling.verification import by_token
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready
from paretone.techniques import conflict, problem, resolve
from tests.engine import small_speech, speaking
from tests.engine.models.kernels.test_graphs import spoken
from tests.engine.models.omnivoice import small_release
from tests.engine.models.small_causal import LLAMA, QWEN, QWEN3, SCALED, small_model, small_transformer
from tests.engine.sampling.test_autoregressive import request_of
from tests.engine.small_language import write_model
from tests.workload import only_in_full, workload

COMPILED = UsedTechnique("compilation", Values(mode="default"))


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
    config = network.config
    codes = torch.full((config.codebooks, 5), config.mask)
    return network.begin(MaskedRequest(torch.tensor([1, 2]), codes[:, :0], 5), 2.0), codes


@pytest.fixture
def network() -> FusedMasked:
    sizes = small_release.CONFIG["llm_config"] | {"num_hidden_layers": 1}
    torch.manual_seed(0)
    return FusedMasked.of(MaskedNetwork(MaskedConfig.read(small_release.CONFIG | {"llm_config": sizes})).eval())


@only_in_full("compiled code")
@pytest.mark.skipif(device.compiler() is None, reason="there is no C++ compiler")
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
def test_a_broken_compiler_is_told_and_done_without(fresh_compiler: None, tmp_path: Path, network: FusedMasked) -> None:
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
    expected = spoken(small_speech.load(variant=variant), plain)
    found = spoken(small_speech.load(variant=variant), plain.with_technique(COMPILED))
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
    model = small_speech.load()
    found = spoken(model, plain.with_technique(COMPILED))
    np.testing.assert_allclose(found.samples, spoken(small_speech.load(), plain).samples, atol=1e-6)
    assert any(note.startswith("Compiling failed (no kernel for this), so") for note in found.notes)
    assert not any("Compiling" in note for note in spoken(model, plain.with_technique(COMPILED)).notes), "said once"


def test_a_take_says_what_of_its_time_was_compiling(
    captured_only: list[str | None], network: FusedMasked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "WORTH_SAYING", 1e-9)
    torch._dynamo.reset()
    function = compiled.Compiled(lambda x: x.cos() + 1, "default")
    monkeypatch.setattr(network, "compiled_function", function, raising=False)
    function(torch.zeros(4, 2))
    compiled.warmed(network)
    assert not compiled.notes_of(network), "what a warm-up compiled is no take's"
    function(torch.zeros(4, 2))
    assert not compiled.notes_of(network), "nothing is compiled again"
    function(torch.zeros(7, 2))
    (said,) = compiled.notes_of(network)
    assert said.startswith("Compiling for this length took") and "the take's times include" in said
    assert not compiled.notes_of(network), "told once"


def test_what_is_not_compiled_says_why(tmp_path: Path) -> None:
    model = speaking.load(write_model(tmp_path / "model"))
    assert "took 1.8 times as long" in (problem(model.info, Setting("lm-mini").with_technique(COMPILED)) or "")
    narrow = Setting("f5-mini").with_technique(UsedTechnique("precision", Values(precision="int8")))
    assert "cannot be compiled" in conflict(narrow.with_technique(COMPILED), "compilation")


# --- A pass as one call -----------------------------------------------------------------------------------------------
CONFIGS = [replace(one, head_width=64) for one in (LLAMA, QWEN, SCALED, QWEN3)]
"""Heads of whole blocks."""


@pytest.fixture(params=[False, True], ids=["plain", "float16 weights"])
def half(request: pytest.FixtureRequest) -> bool:
    return request.param


def rounded(module: nn.Module, half: bool) -> nn.Module:
    for weight in module.parameters() if half else ():
        weight.data.copy_(weight.half().float())
    return module


def one_call(transformer: FusedTransformer) -> Layers | None:
    found = transformer.as_one_call(1, transformer.cache(1), torch.arange(1))
    return found and found[0]


def two_ways(config: CausalConfig, half: bool) -> tuple[FusedTransformer, FusedTransformer]:
    """In one call, and operator by operator."""
    plain = rounded(small_transformer(config), half)
    fast, operators = FusedTransformer.of(plain), FusedTransformer.of(plain)
    layers = one_call(fast)
    assert layers is not None and layers.half is half
    operators.as_one_call = lambda *given: None
    torch.manual_seed(0)
    return fast, operators


@pytest.mark.parametrize("config", CONFIGS, ids=["llama", "qwen", "scaled", "qwen3"])
def test_one_call_gives_what_operators_give(config: CausalConfig, half: bool) -> None:
    fast, operators = two_ways(config, half)
    for batch in (1, 2):
        caches = [one.cache(60, batch) for one in (fast, operators)]
        for tokens in (30, 1, 4, 1, 16):
            embedded = torch.randn(batch, tokens, config.hidden)
            kept: list[list[torch.Tensor]] = [[], []]
            found, expected = (
                one(embedded, cache, None, lambda layer, what, value, there=there: there.append(value))
                for one, cache, there in zip((fast, operators), caches, kept, strict=True)
            )
            torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
            assert len(kept[0]) == config.layers
            torch.testing.assert_close(*kept, atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(*(one.kept() for one in caches), atol=1e-4, rtol=1e-5)
        with pytest.raises(ValueError, match="do not fit"):
            fast(torch.randn(batch, 12, config.hidden), caches[0])


@pytest.mark.parametrize("config", CONFIGS, ids=["llama", "qwen", "scaled", "qwen3"])
def test_bits_of_a_row_do_not_depend_on_those_beside_it(config: CausalConfig, half: bool) -> None:
    fast, _ = two_ways(config, half)
    prefix, embedded = torch.randn(1, 30, config.hidden), torch.randn(2, 9, config.hidden)
    alone, together, several = fast.cache(60), fast.cache(60), [fast.cache(60) for _ in range(2)]
    for cache in (alone, together, *several):
        fast(prefix, cache)
        cache.restore(cache.kept())
    several[1].prefix = several[0].prefix
    wanted = torch.cat([fast(embedded[:1, place : place + 1], alone)[0] for place in range(9)])
    found = torch.cat([fast(embedded[:1, :3], together)[0], fast(embedded[:1, 3:], together)[0]])
    assert torch.equal(found, wanted) and torch.equal(together.kept(), alone.kept())
    both = fast.together([embedded[:1], embedded[1:]], several, [torch.arange(30, 39)] * 2, lambda *given: None)
    assert torch.equal(fast.final_norm(both)[:9], wanted)
    assert torch.equal(several[0].kept(), alone.kept()) and not torch.equal(several[1].kept(), alone.kept())


def test_what_is_no_number_stays_none(half: bool) -> None:
    fast, _ = two_ways(CONFIGS[0], half)
    cache, embedded = fast.cache(60), torch.randn(1, 3, CONFIGS[0].hidden)
    embedded[0, 1, 5] = torch.nan
    assert fast(embedded, cache)[0, 1:].isnan().all()


def wide_model(half: bool = False, stop_score: float = 0.0) -> TokenModel:
    made = small_model(stop_score=stop_score)
    transformer = rounded(small_transformer(replace(QWEN, head_width=64)), half)
    embedding, head = (one.data.half().float() if half else one.data.float() for one in (made.embedding, made.head))
    assert made.bias is not None
    return TokenModel(transformer, embedding, head, made.bias.float(), codes=made.codes).requires_grad_(False)


def drafters(target: TokenModel, half: bool) -> tuple[FeatureDrafter, FeatureDrafter]:
    draft = rounded(FeatureDraft(target.transformer.config, (1,), target.rows, 20, biased=True), half)
    fast, operators = (FeatureDrafter(draft, target) for _ in range(2))
    assert fast.drafts_at_once
    operators.fused_transformer.as_one_call = lambda *given: None
    return fast, operators


def test_a_draft_on_features_gives_the_same(half: bool) -> None:
    fast, operators = drafters(wide_model(half).optimised(), half)
    caches = [one.cache(40) for one in (fast, operators)]
    places = torch.arange(40)
    for tokens, scored in ((20, 1), (1, 1), (3, 2), (16, 16)):
        states, embedded = torch.randn(2, tokens, fast.head.shape[1])
        start = caches[0].length
        here, both = places[start : start + tokens], zip((fast, operators), caches, strict=True)
        found, expected = (one.draft(states, embedded, cache, here, scored) for one, cache in both)
        assert len(found[1]) == scored
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_reading_in_one_call_gives_the_same(half: bool) -> None:
    fast, operators = (wide_model(half).optimised() for _ in range(2))
    operators.fused_transformer.as_one_call = lambda *given: None
    caches = [one.cache(50) for one in (fast, operators)]
    for tokens, scored, keeps in ((20, 1, (0, 2)), (1, 1, None), (4, 3, ()), (16, 2, (1,))):
        embedded, places = torch.randn(1, tokens, fast.head.shape[1]), torch.arange(tokens) + caches[0].length
        (found, features), (expected, wanted) = (
            one.read(embedded, cache, places, scored, keeps)
            for one, cache in zip((fast, operators), caches, strict=True)
        )
        assert len(found) == scored
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)
        if keeps is not None:
            assert wanted.shape[1] == (len(keeps) + 1) * fast.head.shape[1]
            torch.testing.assert_close(features, wanted, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("length", [None, 40])
def test_drafting_in_one_call_drafts_the_same(length: int | None) -> None:
    target = wide_model(stop_score=1.0).optimised()
    fast, operators = drafters(target, half=False)
    request = replace(request_of(target, maximum=60), minimum=12, length=length)
    rule = by_token(0.5, target.codes, guarded=False)
    for seed, sampler in enumerate((Nucleus(), Nucleus(0.8, 8, 0.9), Nucleus(repetition_penalty=1.2))):
        one, other = (
            list(speculation(target, drafter, request, sampler, Uniforms(seed), rule, 4))
            for drafter in (fast, operators)
        )
        assert [(cycle.drafted, cycle.tokens) for cycle in one] == [(cycle.drafted, cycle.tokens) for cycle in other]
        for cycle, like in zip(one, other, strict=True):
            assert cycle.acceptance == pytest.approx(like.acceptance, abs=1e-4)
        assert any(cycle.accepted for cycle in one)


def test_it_is_compiled_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    one_call = few_rows.machine_code()
    assert one_call is not None
    parts = one_call.run, one_call.score, one_call.add_product
    before = [part.signatures for part in parts]
    wide_model(True).optimised().read(torch.randn(1, 1, 24), KeyValueCache(4, 2, 9, 64), torch.arange(1), 1)
    assert [part.signatures for part in parts] == before, "more would be compiled within a take"
    kinds, drafts_of = [], one_call.drafts_of
    monkeypatch.setattr(
        one_call, "drafts_of", lambda *given: kinds.append([*map(type, (*given, *given[6]))]) or drafts_of(*given)
    )
    model, chosen = load_model("lm-mini"), speaking.setting(speaking.drafted(draft="features"))
    assert model.networks(resolve(model.info, chosen)).draft is not None and len(kinds) == 1
    assert any(cycle.drafted for cycle in speaking.spoken(model, chosen).trace.decoding.cycles)
    assert all(one == kinds[0] for one in kinds[1:])


_KERNELS = """
import numpy as np
from paretone.models.kernels.machine_code import kernels
from paretone.sampling.compiled_tokens import draw_from
print(kernels().all(), draw_from(np.ones(4, np.float32), 0.6))
"""


def test_code_is_found_by_the_next_process_and_done_without_where_it_cannot_be_kept(tmp_path: Path) -> None:
    def run(folder: Path, locators: str = "") -> list[Path]:
        place = {"NUMBA_CACHE_DIR": str(folder), "NUMBA_CACHE_LOCATOR_CLASSES": locators}
        done = subprocess.run(
            [sys.executable, "-c", _KERNELS], env=os.environ | place, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["True", "2"]
        return sorted(tmp_path.rglob("*.nbc"))

    found = run(tmp_path)
    assert len(found) > 10 and run(tmp_path) == found
    for one in found:
        one.write_bytes(one.read_bytes()[:100])
    assert run(tmp_path) == found and min(one.stat().st_size for one in found) > 100
    assert run(Path(os.devnull) / "none", "UserProvidedCacheLocator") == found


def test_without_machine_code_torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_causal, "machine_code", lambda: None)
    assert one_call(FusedTransformer.of(small_transformer(CONFIGS[0]))) is None


def test_other_kinds_of_numbers_go_operator_by_operator() -> None:
    for dtype in (torch.float64, torch.bfloat16):
        assert one_call(FusedTransformer.of(small_transformer(LLAMA, dtype=dtype))) is None
