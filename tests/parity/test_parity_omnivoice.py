"""OmniVoice's network and its iterative demasking, against the official class with a small random configuration."""

import functools
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.bench.masked import PlainRun
from paretone.errors import SettingError
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.omnivoice import front_end, text
from paretone.models.omnivoice.checkpoint import hubert
from paretone.models.omnivoice.front_end import WholePassages
from paretone.models.omnivoice.higgs import HiggsConfig, HiggsDecoder, HiggsEncoder, WindowedHiggs, reach
from paretone.sampling.demasking import Canvas, Guide, Rules, candidates, demask
from paretone.sampling.demasking_schedule import Block, commit_counts, demasking_times
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures
from tests.workload import workload

MASKED = fixtures("ar", lambda description: description.get("config", {}).get("model_type") == "omnivoice")
masked_models = pytest.mark.parametrize("fixture", MASKED)
TOLERANCE = 1e-4


def network_of(fixture: Fixture) -> MaskedNetwork:
    network = MaskedNetwork(MaskedConfig.read(fixture.description["config"])).eval()
    network.load_state_dict(fixture.weights, strict=True)
    return network


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
    names = "guidance_scale", "t_shift", "layer_penalty_factor", "position_temperature", "class_temperature"
    return Rules(*(settings[name] for name in names))


def items(fixture: Fixture) -> list[tuple[str, int]]:
    return [(run, item) for run, said in fixture.description["runs"].items() for item in range(len(said["items"]))]


RUNS = cases(MASKED, items)


@pytest.mark.parametrize(("fixture", "run", "item", "kind"), alternating(RUNS, ("fused", "plain")))
def test_parity_omnivoice_lm_demasking_token_for_token(fixture: Fixture, run: str, item: int, kind: str) -> None:
    network = network_of(fixture)
    settings = fixture.description["runs"][run]["config"]
    request, rules = request_of(fixture, run, item), rules_of(settings)
    begin = FusedMasked.of(network).begin if kind == "fused" else functools.partial(PlainRun, network)
    predictor = begin(request, rules.guidance)
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


RATE = 24000
utilities = pytest.mark.parametrize("fixture", fixtures("ar", lambda description: "combine_text" in description))


@utilities
def test_parity_omnivoice_util_durations(fixture: Fixture) -> None:
    for case in fixture.description["duration"]:
        assert text.weight(case["text"]) == pytest.approx(case["total_weight"]), case
        found = text.expected_frames(case["text"], case["ref_text"] or "", case["ref_tokens"] or 0, case["speed"])
        assert found == case["target_tokens"], case


@utilities
def test_parity_omnivoice_util_schedule(fixture: Fixture) -> None:
    for case in fixture.description["schedule"]:
        times = demasking_times(case["num_step"], case["t_shift"])
        assert times.tolist() == pytest.approx(case["timesteps"], abs=1e-9)
        assert list(commit_counts(8 * case["T"], case["num_step"], case["t_shift"])) == case["counts"], case["T"]


@utilities
def test_parity_omnivoice_util_languages(fixture: Fixture) -> None:
    for case in fixture.description["language"]:
        found, notes = text.language(case["given"] or "")
        assert found == case["resolved"], case
        asked = (case["given"] or "none").lower() != "none"
        assert bool(notes) == (asked and case["resolved"] is None), case


@utilities
def test_parity_omnivoice_util_descriptions_of_voices(fixture: Fixture) -> None:
    for case in fixture.description["instruct"]:
        if "error" in case:
            with pytest.raises(SettingError, match=r"\w{4,}"):
                text.instruct(case["given"], chinese=case["use_zh"])
        else:
            assert text.instruct(case["given"], chinese=case["use_zh"]) == case["ok"], case


@utilities
def test_parity_omnivoice_util_texts(fixture: Fixture) -> None:
    for case in fixture.description["combine_text"]:
        assert text.combined(case["text"], case["ref_text"] or "") == case["out"], case
    for case in fixture.description["add_punctuation"]:
        assert text.ended(case["text"]) == case["out"], case
    for case in fixture.description["nonverbal_split"]:
        assert text.segments(case["text"]) == case["segments"], case


@utilities
def test_parity_omnivoice_util_chunks(fixture: Fixture) -> None:
    for case in fixture.description["chunk_text"]:
        assert text.chunks(case["text"], case["chunk_len"], case["min_chunk_len"]) == case["out"], case


def joined(samples: np.ndarray, level: float | None, *, cut: bool = False) -> np.ndarray:
    """A single passage after joining; ``level`` is that of the reference."""
    joiner = WholePassages(RATE, level, cut=cut)
    joiner.begin()
    return np.concatenate([joiner.push(samples), joiner.finish()])


def audio_of(fixture: Fixture) -> np.ndarray:
    return fixture["audio"][0].numpy()


@utilities
def test_parity_omnivoice_util_silence(fixture: Fixture) -> None:
    names = [name for name in fixture.names if name.startswith("remove_silence_")]
    assert names
    for name in names:
        found, _ = front_end.without_silence(audio_of(fixture), RATE, *map(int, name.split("_")[2:]))
        assert np.array_equal(found, fixture[name][0].numpy()), name


@utilities
def test_parity_omnivoice_util_long_references(fixture: Fixture) -> None:
    expected = fixture.description["trim_long_audio"]
    speech = np.resize(audio_of(fixture), expected["in_samples"])  # repeated as often as it takes
    assert front_end.cut_of(speech, RATE) * RATE == expected["out_samples"]


@utilities
def test_parity_omnivoice_util_fades(fixture: Fixture) -> None:
    found = joined(audio_of(fixture), front_end.QUIET)
    assert_close(torch.from_numpy(found), fixture["fade_pad_default"][0], 1e-6, "faded and padded speech")
    given, expected = fixture["short"][0], fixture["fade_pad_short"][0]
    pad = (len(expected) - len(given)) // 2
    assert not expected[:pad].any() and not expected[-pad:].any()
    short = front_end.fade_edges(given.numpy(), int(front_end.FADE_SECONDS * RATE))
    assert_close(torch.from_numpy(short), expected[pad:-pad], 1e-6, "faded short speech")


@utilities
@pytest.mark.parametrize("kind", ["none", "low", "high"])
def test_parity_omnivoice_util_post_processing(fixture: Fixture, kind: str) -> None:
    low, high = map(float, re.search(r"ref_rms None / ([\d.]+) / ([\d.]+)", fixture.description["audio_note"]).groups())
    found = joined(audio_of(fixture), {"none": None, "low": low, "high": high}[kind], cut=True)
    assert_close(torch.from_numpy(found), fixture[f"post_{kind}"][0], 1e-6, "post-processed speech")


codecs = pytest.mark.parametrize("fixture", fixtures("ar", lambda description: "num_quantizers" in description))
CODEC = 1e-5
AUDIO = 5e-5
"""Of speech up to 1.4 loud, after all blocks: found were 5e-6 to 1.7e-5, by the processor's instructions."""


def decoder_of(fixture: Fixture) -> HiggsDecoder:
    decoder = HiggsDecoder(HiggsConfig.read(fixture.description["config"]))
    decoder.load_state_dict({name: fixture.weights[name] for name in decoder.state_dict()})
    return decoder.eval()


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_decoding(fixture: Fixture) -> None:
    decoder, codes = decoder_of(fixture), fixture["audio_codes"]
    config, said = decoder.config, [fixture.description[one] for one in ("num_quantizers", "frame_rate", "hop_length")]
    assert [config.codebooks, config.frame_rate, config.hop] == said
    summed = decoder.summed(codes)
    assert_close(summed, fixture["decode.quantized"], CODEC, "the sum of the codes")
    latent = decoder.fc2(summed.transpose(1, 2)).transpose(1, 2)
    assert_close(latent, fixture["decode.acoustic_in"], CODEC, "what the decoder is given")
    hidden = decoder.acoustic_decoder.conv1(latent[:1])
    for number in range(sum(name.startswith("decode.block") for name in fixture.names)):
        hidden = decoder.acoustic_decoder.block[number](hidden)
        assert_close(hidden, fixture[f"decode.block{number}_out_item0"], 10 * CODEC, f"block {number}")
    assert_close(decoder(codes)[:, None], fixture["decode.audio_values"], AUDIO, "the speech")


@codecs
@pytest.mark.parametrize("sizes", workload([(12, 12, 12, 14), (25, 25), (1,) * 50, (32, 18)], [(12, 1, 1, 36)]))
@torch.inference_mode()
def test_parity_higgs_v2_windows_are_exact(fixture: Fixture, sizes: tuple[int, ...]) -> None:
    decoder = decoder_of(fixture)
    config = decoder.config
    entries = fixture.description["config"]["codebook_size"]
    codes = torch.randint(entries, (config.codebooks, sum(sizes)), generator=torch.Generator().manual_seed(1))
    windowed = WindowedHiggs(decoder)
    _, after = reach(config.ratios)
    pieces = [windowed.push(part) for part in codes.split(list(sizes), dim=1)]
    assert sum(map(len, pieces)) == (sum(sizes) - after) * config.hop
    streamed = np.concatenate([*pieces, windowed.finish()])
    whole = windowed.whole(codes).samples
    assert streamed.shape == whole.shape == (sum(sizes) * config.hop,)
    assert np.abs(streamed - whole).max() <= AUDIO


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_codes_reach_as_far_as_is_said(fixture: Fixture) -> None:
    """A changed frame changes what the official ratios let it, no more and not much less."""
    decoder = decoder_of(fixture).double()
    before, after = reach(decoder.config.ratios)
    context = fixture.description["decode_context"]
    hop = decoder.config.hop
    assert before == -(-context["left_samples"] // hop)
    assert after == -(-context["right_samples"] // hop)
    codes = torch.zeros(1, decoder.config.codebooks, 60, dtype=torch.long)
    changed = codes.clone()
    changed[:, :, 30] = 7
    different = (decoder(codes) - decoder(changed))[0].abs().view(60, hop).amax(1) > 0
    # Sound before frame 30 depends on it within the look-ahead.
    assert different.nonzero().flatten().tolist() == list(range(30 - after, 30 + before + 1))


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_encoding(fixture: Fixture) -> None:
    pytest.importorskip("transformers")
    config = HiggsConfig.read(fixture.description["config"])
    encoder = HiggsEncoder(config, hubert(config)).eval()
    encoder.load_state_dict({name: fixture.weights[name] for name in encoder.state_dict()})
    samples = fixture["encode.wav"][0]
    semantic = encoder.semantic(samples)
    assert_close(semantic.transpose(1, 2), fixture["encode.semantic_features"], 1e-4, "what HuBERT hears")
    assert_close(encoder.encoder_semantic(semantic), fixture["encode.encoder_semantic"], 1e-4, "the semantic part")
    assert_close(encoder.acoustic_encoder(samples[:, None]), fixture["encode.acoustic"], 1e-2, "the acoustic part")
    assert_close(encoder.embedded(samples), fixture["encode.embeddings"], 1e-2, "what is quantised")
    assert torch.equal(encoder(samples), fixture["encode.audio_codes"])
