"""OmniVoice's network and its iterative demasking, against the official class with a small random configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.bench.masked import PlainRun
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.sampling.demasking import Canvas, Guide, Rules, candidates, demask
from paretone.sampling.demasking_schedule import Block
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

MASKED = fixtures("ar", lambda description: description.get("config", {}).get("model_type") == "omnivoice")
masked_models = pytest.mark.parametrize("fixture", MASKED)
TOLERANCE = 1e-4
RELEASED = {
    "model_type": "omnivoice",
    "audio_vocab_size": 1025,
    "audio_mask_id": 1024,
    "num_audio_codebook": 8,
    "llm_config": {
        "model_type": "qwen3",
        "vocab_size": 151676,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
    },
}


def network_of(fixture: Fixture) -> MaskedNetwork:
    full_precision()
    network = MaskedNetwork(MaskedConfig.read(fixture.description["config"])).eval()
    network.load_state_dict(fixture.weights, strict=True)
    return network


def test_parity_omnivoice_lm_names_and_shapes_of_the_release() -> None:
    with torch.device("meta"):
        network = MaskedNetwork(MaskedConfig.read(RELEASED))
    found = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert found == released("OmniVoice")
    assert sum(one.numel() for one in network.parameters()) == 612_577_280


@masked_models
@torch.inference_mode()
def test_parity_omnivoice_lm_network(fixture: Fixture) -> None:
    network = network_of(fixture)
    audio = fixture["train.audio_mask"][..., None]
    codes = torch.where(fixture["train.audio_mask"][:, None], fixture["train.input_ids"], 0)
    embedded = torch.where(audio, network.audio(codes), network.text(fixture["train.input_ids"][:, 0]))
    assert_close(embedded, fixture["train.inputs_embeds"], TOLERANCE, "the embedding")
    hidden = network.llm(embedded, mask=fixture["train.attention_mask"].bool())
    assert_close(hidden, fixture["train.last_hidden_state"], TOLERANCE, "the last hidden state")
    shortest = int(fixture["train.attention_mask"][:, 0, 0].sum(-1).min())
    scores = network.scores(hidden[:, shortest - 3 : shortest])
    assert_close(scores, fixture["train.logits_last3"], TOLERANCE, "the scores")


@masked_models
@torch.inference_mode()
def test_parity_omnivoice_lm_first_scores_of_both_branches(fixture: Fixture) -> None:
    network = network_of(fixture)
    ids, audio = fixture["clone.batch_input_ids_step0"], fixture["clone.audio_mask"]
    frames = fixture["clone.item0.final"].shape[1]
    text = ids[:1, 0][:, ~audio[0]]
    scores = network(text, ids[:1][:, :, audio[0]], targets=frames)
    assert_close(scores[:, :, :3], fixture["clone.item0.step0.cond_logits_pos0_3"][None], TOLERANCE, "the scores")
    alone = network(text[:, :0], ids[1:, :, :frames], targets=frames)
    assert_close(alone[:, :, :3], fixture["clone.item0.step0.uncond_logits_pos0_3"][None], TOLERANCE, "without text")


class Replayed:
    """The uniform numbers that a fixture recorded."""

    def __init__(self, fixture: Fixture, run: str) -> None:
        self._fixture, self._run = fixture, run

    def positions(self, step: int, codebooks: int, frames: int) -> Tensor:
        return self._fixture[f"{self._run}.uniform_position"][step, 0]

    def classes(self, step: int, codebooks: int, frames: int, entries: int) -> Tensor:
        return self._fixture[f"{self._run}.uniform_class"][step, 0]


def request_of(fixture: Fixture, run: str, item: int) -> MaskedRequest:
    """The request of an item, read from the official code's inputs."""
    ids, audio = fixture[f"{run}.batch_input_ids_step0"][item], fixture[f"{run}.audio_mask"][item]
    length = fixture.description["runs"][run]["cond_lens"][item]
    ids, audio = ids[:, :length], audio[:length]
    frames = fixture[f"{run}.item{item}.final"].shape[1]
    codes = ids[:, audio]
    return MaskedRequest(ids[0, ~audio], codes[:, : codes.shape[1] - frames], frames)


def rules_of(settings: dict) -> Rules:
    return Rules(
        settings["guidance_scale"],
        settings["t_shift"],
        settings["layer_penalty_factor"],
        settings["position_temperature"],
        settings["class_temperature"],
    )


RUNS = [
    pytest.param(one.values[0], run, item, id=f"{one.id}-{run}-{item}", marks=one.marks)
    for one in MASKED
    for run, said in one.values[0].description["runs"].items()
    for item in range(len(said["items"]))
]


@pytest.mark.parametrize(("fixture", "run", "item"), RUNS)
@pytest.mark.parametrize("kind", ["fused", "plain"])
def test_parity_omnivoice_lm_demasking_token_for_token(fixture: Fixture, run: str, item: int, kind: str) -> None:
    network = network_of(fixture)
    settings = fixture.description["runs"][run]["config"]
    request, rules = request_of(fixture, run, item), rules_of(settings)
    predictor = (
        PlainRun(network, request, rules.guidance)
        if kind == "plain"
        else FusedMasked.of(network).begin(request, rules.guidance)
    )
    canvas = Canvas(network.config.codebooks, request.frames, network.config.mask, torch.device("cpu"))
    before = fixture[f"{run}.item{item}.tokens_before_step"]
    steps = demask(predictor, canvas, Block(0, request.frames, settings["num_step"]), rules, Replayed(fixture, run))
    assert torch.equal(canvas.codes, before[0])
    for step in steps:
        expected = before[step + 1] if step + 1 < len(before) else fixture[f"{run}.item{item}.final"]
        assert torch.equal(canvas.codes, expected), f"step {step}"
        assert torch.equal(canvas.order == step, (expected != before[step])), f"step {step}"
    assert torch.equal(canvas.codes, fixture[f"{run}.item{item}.final"])
    assert ((canvas.probability > 0) & (canvas.probability <= 1)).all()


@pytest.mark.parametrize(("fixture", "run", "item"), RUNS)
@torch.inference_mode()
def test_parity_omnivoice_lm_candidates(fixture: Fixture, run: str, item: int) -> None:
    network = network_of(fixture)
    request, rules = request_of(fixture, run, item), rules_of(fixture.description["runs"][run]["config"])
    predictor = FusedMasked.of(network).begin(request, rules.guidance)
    start = f"{run}.item{item}.step"
    steps = {int(name.removeprefix(start).partition(".")[0]) for name in fixture.names if name.startswith(start)}
    for step in sorted(steps):
        codes = fixture[f"{run}.item{item}.tokens_before_step"][step]
        scores = predictor.scores(codes, 0, request.frames, Guide.BOTH)
        # What was recorded are the likeliest codes, also where others were drawn.
        code, _, likeliest = candidates(scores, replace(rules, class_temperature=0.0), scores.new_zeros)
        assert torch.equal(code, fixture[f"{start}{step}.pred_tokens"])
        assert_close(likeliest, fixture[f"{start}{step}.confidence"], TOLERANCE, f"log-probabilities of step {step}")


@masked_models
@torch.inference_mode()
def test_parity_omnivoice_lm_exact_savings_leave_the_scores(fixture: Fixture) -> None:
    """The fused network against the one that runs as upstream, on the same canvases and parts of them."""
    network = network_of(fixture)
    request = request_of(fixture, "clone", 0)
    guidance = fixture.description["runs"]["clone"]["config"]["guidance_scale"]
    plain, fused = PlainRun(network, request, guidance), FusedMasked.of(network).begin(request, guidance)
    for codes in fixture["clone.item0.tokens_before_step"]:
        for first, last in ((0, request.frames), (request.frames // 7, request.frames // 2)):
            expected = plain.scores(codes, first, last, Guide.BOTH)
            found = fused.scores(codes, first, last, Guide.BOTH).log_softmax(-1)
            assert_close(found, expected, TOLERANCE, "the log-probabilities")
