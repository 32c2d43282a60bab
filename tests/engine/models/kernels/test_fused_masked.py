"""The masked network for inference: each saving against the full computation, and fewer bits against float32."""

from __future__ import annotations

import pytest
import torch

from paretone.bench.masked import PlainRun
from paretone.models.families.masked import MaskedNetworks
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.kernels.kept_prefix import KeptPrefixRun, ReusedLayersRun
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.sampling.demasking import Canvas, Guide, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from tests.engine.sampling.test_demasking import READ_BACK, Recorder

CONFIG = MaskedConfig(Qwen3Config(48, 3, 4, 2, 16, 80, 1e-6, 1e6), 30, 4, 17)
FRAMES, TEXT, REFERENCE = 11, 7, 5
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def network() -> MaskedNetwork:
    torch.manual_seed(0)
    made = MaskedNetwork(CONFIG).eval().requires_grad_(False)
    for name, weight in made.named_parameters():
        # Norms that do something.
        weight.copy_(1 + 0.3 * torch.randn(weight.shape) if name.endswith("norm.weight") else weight)
    return made


def request(**more: object) -> MaskedRequest:
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(30, (TEXT,), generator=generator)
    reference = torch.randint(16, (4, REFERENCE), generator=generator)
    return MaskedRequest(text, reference, FRAMES, **more)


def canvas(seed: int) -> torch.Tensor:
    return torch.randint(17, (4, FRAMES), generator=torch.Generator().manual_seed(seed))


def close(first: torch.Tensor, second: torch.Tensor) -> None:
    difference = (first.log_softmax(-1) - second.log_softmax(-1)).abs().max().item()
    assert difference <= TOLERANCE, difference


@pytest.mark.parametrize("guidance", [0.0, 2.0])
@pytest.mark.parametrize("restarted", [False, True])
def test_all_savings_together_leave_the_scores(network: MaskedNetwork, guidance: float, restarted: bool) -> None:
    positions = torch.cat([torch.arange(TEXT), torch.arange(REFERENCE + FRAMES)]) if restarted else None
    asked = request(positions=positions, alone_positions=torch.arange(3, 3 + FRAMES) if restarted else None)
    plain, fused = PlainRun(network, asked, guidance), FusedMasked.of(network).begin(asked, guidance)
    close(fused.scores(canvas(0), 0, FRAMES, Guide.BOTH), plain.scores(canvas(0), 0, FRAMES, Guide.BOTH))


def test_what_is_kept_from_step_to_step_is_what_a_new_canvas_computes(network: MaskedNetwork) -> None:
    fused = FusedMasked.of(network)
    run = fused.begin(request(), 2.0)
    for seed in range(3):
        fresh = fused.begin(request(), 2.0)
        assert torch.equal(
            run.scores(canvas(seed), 0, FRAMES, Guide.BOTH), fresh.scores(canvas(seed), 0, FRAMES, Guide.BOTH)
        )


def test_the_last_layer_and_the_head_need_only_the_frames_that_are_asked_for(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    whole, part = (run.scores(canvas(0), first, last, Guide.BOTH) for first, last in ((0, FRAMES), (3, 8)))
    assert part.shape == (4, 5, 17)
    close(part, whole[:, 3:8])


def test_guidance_used_again_where_nothing_changed_is_guidance(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    guided = run.scores(canvas(0), 0, FRAMES, Guide.BOTH)
    close(run.scores(canvas(0), 0, FRAMES, Guide.REUSED), guided)
    alone = run.scores(canvas(0), 0, FRAMES, Guide.ALONE)
    close(alone, FusedMasked.of(network).begin(request(), 0.0).scores(canvas(0), 0, FRAMES, Guide.BOTH))
    assert not torch.allclose(alone, guided)


def test_guidance_of_other_frames_is_not_used_again(network: MaskedNetwork) -> None:
    run = FusedMasked.of(network).begin(request(), 2.0)
    run.scores(canvas(0), 0, 5, Guide.BOTH)
    spent = run.operations
    close(run.scores(canvas(0), 5, FRAMES, Guide.REUSED), run.scores(canvas(0), 5, FRAMES, Guide.BOTH))
    assert run.operations - spent == 2 * request().operations(CONFIG, FRAMES - 5, Guide.BOTH)


def test_weights_are_shared_with_the_plain_network(network: MaskedNetwork) -> None:
    expected = PlainRun(network, request(), 2.0).scores(canvas(0), 0, FRAMES, Guide.BOTH)
    FusedMasked.of(network)
    attention = network.llm.layers[0].self_attn
    assert attention.q_proj.weight.untyped_storage().data_ptr() == attention.v_proj.weight.untyped_storage().data_ptr()
    again = PlainRun(network, request(), 2.0).scores(canvas(0), 0, FRAMES, Guide.BOTH)
    assert torch.equal(expected, again)


def test_nothing_is_read_back_while_a_block_is_filled_in(network: MaskedNetwork) -> None:
    """Network, guidance, scoring and committing together: whatever brings a number to the processor would make it wait
    for a graphics card."""
    fused, noise = FusedMasked.of(network), SeededCanvasNoise(0, torch.device("cpu"))
    runs = fused.begin(request(), 2.0), KeptPrefixRun(fused, request(), 2.0, 2)
    guides = (Guide.BOTH, Guide.REUSED, Guide.ALONE, Guide.BOTH)
    for run in runs:
        filled = Canvas(4, FRAMES, CONFIG.mask, torch.device("cpu"))
        rules = Rules(class_temperature=0.5)
        with Recorder() as recorder:
            steps = demask(
                run, filled, Block(2, 9, 6), rules, noise, 0, lambda step: guides[step % 4], still=lambda taken: 3
            )
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
        first, second = (
            one.begin(request(), 2.0).scores(canvas(seed), 0, FRAMES, Guide.BOTH).float().log_softmax(-1)
            for one in (networks.own, narrow)
        )
        assert 0 < (first - second).abs().max() < 0.2
        assert (first.argmax(-1) == second.argmax(-1)).float().mean() > 0.9


def partial_run(kind: type, network: MaskedNetwork, every: int) -> KeptPrefixRun | ReusedLayersRun:
    """A run of which only every so many steps are whole."""
    layers = (range(1, len(network.llm.layers) - 1),) if kind is ReusedLayersRun else ()
    return kind(FusedMasked.of(network), request(), 2.0, every, *layers)


@pytest.mark.parametrize("kind", [KeptPrefixRun, ReusedLayersRun])
def test_whole_steps_change_nothing(network: MaskedNetwork, kind: type) -> None:
    run, plain = partial_run(kind, network, 1), FusedMasked.of(network).begin(request(), 2.0)
    for seed in range(3):
        expected = plain.scores(canvas(seed), 0, FRAMES, Guide.BOTH)
        assert torch.equal(run.scores(canvas(seed), 0, FRAMES, Guide.BOTH), expected)
    assert run.operations == plain.operations


@pytest.mark.parametrize("guide", [Guide.BOTH, Guide.ALONE])
@pytest.mark.parametrize(("kind", "share"), [(KeptPrefixRun, 0.8), (ReusedLayersRun, 0.9)])
def test_partial_steps_are_exact_as_long_as_the_canvas_stays(
    network: MaskedNetwork, kind: type, share: float, guide: Guide
) -> None:
    run = partial_run(kind, network, 3)
    first = run.scores(canvas(0), 0, FRAMES, guide)
    whole, spent = run.rows_of_last(guide), run.operations
    close(run.scores(canvas(0), 0, FRAMES, guide), first)
    assert run.operations - spent < share * spent
    assert run.rows_of_last(guide) < run.rows_of(guide) < whole
    close(run.scores(canvas(0), 3, 8, guide), first[:, 3:8])
    # The fourth step computes everything again, for another canvas too.
    fresh = FusedMasked.of(network).begin(request(), 2.0)
    close(run.scores(canvas(1), 0, FRAMES, guide), fresh.scores(canvas(1), 0, FRAMES, guide))
    assert not torch.allclose(run.scores(canvas(2), 0, FRAMES, guide), fresh.scores(canvas(2), 0, FRAMES, guide))


def test_what_one_branch_left_serves_no_step_with_both(network: MaskedNetwork) -> None:
    fused = FusedMasked.of(network)
    run, fresh = ReusedLayersRun(fused, request(), 2.0, 4, range(1, 2)), fused.begin(request(), 2.0)
    run.scores(canvas(0), 0, FRAMES, Guide.ALONE)
    close(run.scores(canvas(1), 0, FRAMES, Guide.BOTH), fresh.scores(canvas(1), 0, FRAMES, Guide.BOTH))
    assert run.operations == sum(
        request().operations(fused.config, FRAMES, guide) for guide in (Guide.ALONE, Guide.BOTH)
    )
    # What both left serves the conditional one alone.
    spent = run.operations
    alone = run.scores(canvas(1), 0, FRAMES, Guide.ALONE)
    close(alone, fresh.scores(canvas(1), 0, FRAMES, Guide.ALONE))
    assert run.operations - spent < request().operations(fused.config, FRAMES, Guide.ALONE)
    run.begin_block()
    close(run.scores(canvas(2), 0, FRAMES, Guide.ALONE), fresh.scores(canvas(2), 0, FRAMES, Guide.ALONE))


def test_short_passes_are_foreseen(network: MaskedNetwork) -> None:
    fused, guides = FusedMasked.of(network), [Guide.ALONE, Guide.BOTH, Guide.BOTH, Guide.ALONE, Guide.BOTH, Guide.ALONE]
    for run in (KeptPrefixRun(fused, request(), 2.0, 4), ReusedLayersRun(fused, request(), 2.0, 4, range(1, 2))):
        foreseen = run.short_passes(guides)
        assert any(foreseen) and not all(foreseen)
        for _ in range(2):
            found = []
            for guide in guides:
                before = run.operations
                run.scores(canvas(0), 0, FRAMES, guide)
                found.append(run.operations - before < request().operations(fused.config, FRAMES, guide))
            assert found == foreseen
            run.begin_block()
