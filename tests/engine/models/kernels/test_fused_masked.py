"""The masked network for inference: each saving against the full computation, and fewer bits against float32."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from paretone.bench.masked import PlainRun
from paretone.models.families.masked import MaskedNetworks
from paretone.models.kernels.fused_masked import MOST_THREADS, FusedMasked, MaskedRequest, machine_code
from paretone.models.kernels.kept_prefix import KeptPrefixRun, ReusedLayersRun
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.sampling.demasking import Canvas, Guide, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from tests.engine.sampling.test_demasking import READ_BACK, Recorder

CONFIG = MaskedConfig(Qwen3Config(48, 3, 4, 2, 16, 80, 1e-6, 1e6), 30, 4, 17)
FRAMES, TEXT, REFERENCE = 11, 7, 5


@pytest.fixture(scope="module", params=[16, 64], ids=["operators", "one call"])
def network(request: pytest.FixtureRequest) -> Iterator[MaskedNetwork]:
    """On one thread; only heads of 64 are whole blocks of machine code."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = replace(CONFIG, transformer=replace(CONFIG.transformer, head_width=request.param))
    made = MaskedNetwork(config).eval().requires_grad_(False)
    for name, weight in made.named_parameters():
        # Norms that do something.
        weight.copy_(1 + 0.3 * torch.randn(weight.shape) if name.endswith("norm.weight") else weight)
    yield made
    torch.set_num_threads(threads)


def request(**more: object) -> MaskedRequest:
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(30, (TEXT,), generator=generator)
    return MaskedRequest(text, torch.randint(16, (4, REFERENCE), generator=generator), FRAMES, **more)


def scored(run: Any, seed: int, guide: Guide = Guide.BOTH, first: int = 0, last: int = FRAMES) -> torch.Tensor:
    canvas = torch.randint(17, (4, FRAMES), generator=torch.Generator().manual_seed(seed))
    return run.scores(canvas, first, last, guide)


def close(first: torch.Tensor, second: torch.Tensor) -> None:
    torch.testing.assert_close(first.log_softmax(-1), second.log_softmax(-1), atol=2e-5, rtol=0)


@pytest.mark.parametrize("guidance", [0.0, 2.0])
@pytest.mark.parametrize("restarted", [False, True])
def test_all_savings_together_leave_the_scores(network: MaskedNetwork, guidance: float, restarted: bool) -> None:
    positions = torch.cat([torch.arange(TEXT), torch.arange(REFERENCE + FRAMES)]) if restarted else None
    asked = request(positions=positions, alone_positions=torch.arange(3, 3 + FRAMES) if restarted else None)
    plain, fused = PlainRun(network, asked, guidance), FusedMasked.of(network).begin(asked, guidance)
    close(scored(fused, 0), scored(plain, 0))


def test_what_is_kept_from_step_to_step_is_what_a_new_canvas_computes(network: MaskedNetwork) -> None:
    fused = FusedMasked.of(network)
    run = fused.begin(request(), 2.0)
    for seed in range(3):
        assert torch.equal(scored(run, seed), scored(fused.begin(request(), 2.0), seed))


def test_the_last_layer_and_the_head_need_only_the_frames_that_are_asked_for(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    whole, part = scored(run, 0), scored(run, 0, first=3, last=8)
    assert part.shape == (4, 5, 17)
    close(part, whole[:, 3:8])


def test_guidance_used_again_where_nothing_changed_is_guidance(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    guided = scored(run, 0)
    close(scored(run, 0, Guide.REUSED), guided)
    alone = scored(run, 0, Guide.ALONE)
    close(alone, scored(FusedMasked.of(network).begin(request(), 0.0), 0))
    assert not torch.allclose(alone, guided)


def test_guidance_of_other_frames_is_not_used_again(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    scored(run, 0, last=5)
    spent = run.operations
    close(scored(run, 0, Guide.REUSED, first=5), scored(run, 0, first=5))
    assert run.operations - spent == 2 * request().operations(network.config, FRAMES - 5, Guide.BOTH)


def test_a_pass_is_one_call_on_few_threads(network: MaskedNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = FusedMasked.of(network)
    run = fused.begin(request(), 2.0)
    first = scored(run, 3)
    monkeypatch.setitem(vars(fused), "attended", None)
    if network.config.transformer.head_width == 64 and machine_code() is not None:
        assert torch.equal(scored(run, 3), first)
        torch.set_num_threads(MOST_THREADS + 1)
    with pytest.raises(TypeError, match="not callable"):
        scored(run, 3)
    torch.set_num_threads(1)


def test_weights_are_shared_with_the_plain_network(network: MaskedNetwork) -> None:
    expected = scored(PlainRun(network, request(), 2.0), 0)
    FusedMasked.of(network)
    attention = network.llm.layers[0].self_attn
    assert attention.q_proj.weight.untyped_storage().data_ptr() == attention.v_proj.weight.untyped_storage().data_ptr()
    assert torch.equal(expected, scored(PlainRun(network, request(), 2.0), 0))


def test_nothing_is_read_back_while_a_block_is_filled_in(network: MaskedNetwork) -> None:
    """Network, guidance, scoring and committing: a number for the processor would make it wait for a graphics card."""
    fused, noise = FusedMasked.of(network), SeededCanvasNoise(0, torch.device("cpu"))
    runs = fused.begin(request(), 2.0), KeptPrefixRun(fused, request(), 2.0, 2)
    guides, rules = (Guide.BOTH, Guide.REUSED, Guide.ALONE, Guide.BOTH), Rules(class_temperature=0.5)
    for run in runs:
        filled = Canvas(4, FRAMES, CONFIG.mask, torch.device("cpu"))
        with Recorder() as recorder:
            steps = demask(run, filled, Block(2, 9, 6), rules, noise, 0, lambda step: guides[step], still=lambda _: 3)
            assert len(list(steps)) == 4
        assert "aten::topk" in recorder.names
        assert not recorder.names & READ_BACK


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "float16_all"])
def test_fewer_bits_against_float32(network: MaskedNetwork, precision: str) -> None:
    networks = MaskedNetworks(network, "float32", lambda made: None)
    assert networks.of("float32") is networks.own
    narrow = networks.of(precision)
    assert networks.of(precision) is narrow
    for seed in range(3):
        runs = (one.begin(request(), 2.0) for one in (networks.own, narrow))
        first, second = (scored(run, seed).float().log_softmax(-1) for run in runs)
        assert 0 < (first - second).abs().max() < 0.2
        assert (first.argmax(-1) == second.argmax(-1)).float().mean() > 0.9


def partial_run(kind: type, network: MaskedNetwork, every: int) -> KeptPrefixRun | ReusedLayersRun:
    layers = (range(1, len(network.llm.layers) - 1),) if kind is ReusedLayersRun else ()
    return kind(FusedMasked.of(network), request(), 2.0, every, *layers)


@pytest.mark.parametrize("kind", [KeptPrefixRun, ReusedLayersRun])
def test_whole_steps_change_nothing(network: MaskedNetwork, kind: type) -> None:
    run, plain = partial_run(kind, network, 1), FusedMasked.of(network).begin(request(), 2.0)
    for seed in range(3):
        assert torch.equal(scored(run, seed), scored(plain, seed))
    assert run.operations == plain.operations


@pytest.mark.parametrize("guide", [Guide.BOTH, Guide.ALONE])
@pytest.mark.parametrize(("kind", "share"), [(KeptPrefixRun, 0.8), (ReusedLayersRun, 0.9)])
def test_partial_steps_keep_a_canvas_exact(network: MaskedNetwork, kind: type, share: float, guide: Guide) -> None:
    run = partial_run(kind, network, 3)
    first = scored(run, 0, guide)
    whole, spent = run.rows_of_last(guide), run.operations
    close(scored(run, 0, guide), first)
    assert run.operations - spent < share * spent
    assert run.rows_of_last(guide) < run.rows_of(guide) < whole
    close(scored(run, 0, guide, 3, 8), first[:, 3:8])
    # The fourth step computes everything again, for another canvas too.
    fresh = FusedMasked.of(network).begin(request(), 2.0)
    close(scored(run, 1, guide), scored(fresh, 1, guide))
    assert not torch.allclose(scored(run, 2, guide), scored(fresh, 2, guide))


def test_what_one_branch_left_serves_no_step_with_both(network: MaskedNetwork) -> None:
    fused = FusedMasked.of(network)
    run, fresh = ReusedLayersRun(fused, request(), 2.0, 4, range(1, 2)), fused.begin(request(), 2.0)
    alone, both = (request().operations(fused.config, FRAMES, guide) for guide in (Guide.ALONE, Guide.BOTH))
    scored(run, 0, Guide.ALONE)
    close(scored(run, 1), scored(fresh, 1))
    assert run.operations == alone + both
    # What both left serves the conditional one alone.
    close(scored(run, 1, Guide.ALONE), scored(fresh, 1, Guide.ALONE))
    assert run.operations < 2 * alone + both
    run.begin_block()
    close(scored(run, 2, Guide.ALONE), scored(fresh, 2, Guide.ALONE))


def test_short_passes_are_foreseen(network: MaskedNetwork) -> None:
    fused, guides = FusedMasked.of(network), [Guide.ALONE, Guide.BOTH, Guide.BOTH, Guide.ALONE, Guide.BOTH, Guide.ALONE]
    for run in (KeptPrefixRun(fused, request(), 2.0, 4), ReusedLayersRun(fused, request(), 2.0, 4, range(1, 2))):
        foreseen = run.short_passes(guides)
        assert any(foreseen) and not all(foreseen)
        for _ in range(2):
            found = []
            for guide in guides:
                before = run.operations
                scored(run, 0, guide)
                found.append(run.operations - before < request().operations(fused.config, FRAMES, guide))
            assert found == foreseen
            run.begin_block()
