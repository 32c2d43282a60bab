"""Common parts of benches of masked models: options, quality, and reference runs.

Quality is the change in words, timbre and codes against plain synthesis. Timbre is measured against the original speech
of the same sentence, in the same voice and, for scale, in the other bundled voices (:mod:`paretone.measure.fidelity`);
installed learned judges are asked as well. Reference runs use the same weights as upstream does, and with its extra
work removed step by step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretone.audio.spectrogram import drawn_or_heard
from paretone.bench import bundled
from paretone.commands.arguments import positive
from paretone.errors import PlainError
from paretone.measure.fidelity import timbre_distance
from paretone.measure.timing import running_order
from paretone.measure.verdicts import ORIGINAL, VoiceVerdict, Way, counted_errors, verdicts
from paretone.models.base import Synthesis, Voice
from paretone.models.catalogue import harvard_sentences
from paretone.models.families.masked import MaskedSpeech
from paretone.models.kernels.fused_masked import MaskedRequest
from paretone.models.networks.masked_network import BidirectionalTransformer, MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.models.networks.shapes import without_weights
from paretone.sampling.demasking import Guide, Predictor
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements
from paretone.speaking import make_ready, synthesise


def add_arguments(parser: argparse.ArgumentParser, rounds: int) -> None:
    bundled.add_family_arguments(parser, "omni-mini", rounds)
    parser.add_argument("--steps", type=positive, default=16, help="demasking steps (default: %(default)s)")


loaded: Callable[[argparse.Namespace], MaskedSpeech] = partial(bundled.loaded_as, MaskedSpeech, "a masked model")


TOGETHER = 2
"""Harvard sentences per timed utterance: four to five seconds, which the bundled model speaks on one canvas."""


def taken(
    model: MaskedSpeech,
    ways: Mapping[str, Setting],
    arguments: argparse.Namespace,
    apart: int = TOGETHER,
    within: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
) -> dict[str, list[Measurements]]:
    """Measurements of every way, round by round; utterances begin ``apart`` sentences after each other. ``within``: how
    ``model`` is while it speaks in a way."""
    found: dict[str, list[Measurements]] = {name: [] for name in ways}
    sentences, voice = harvard_sentences(), bundled.speaker(arguments)
    for setting in ways.values():
        make_ready(model, setting, voice)
    for number in range(-1, arguments.rounds):  # The first is for warm-up.
        text = " ".join(sentences[(apart * number + place) % len(sentences)] for place in range(TOGETHER))
        for name in running_order(tuple(ways), number):
            setting = replace(ways[name], seed=ways[name].seed + number + 1)
            with within(name):
                measured = synthesise(model, text, voice, setting).measurements
            if number >= 0:
                found[name].append(measured)
        if number >= 0:
            bundled.say(f"round {number + 1} of {arguments.rounds}")
    return found


# --- Quality ----------------------------------------------------------------------------------------------------------
_ByVoice = dict[str, VoiceVerdict]
"""Verdicts on one way of speaking, with the mels of all its sentences."""


def judged(
    model: MaskedSpeech, ways: Mapping[str, Setting], sentences: Sequence[str], voices: Sequence[Voice]
) -> dict[str, dict[str, Any]]:
    """Columns of a report on every one of ``ways``, the first being the baseline, and on the original speech, on
    ``sentences`` in each of ``voices``. Empty without sentences. Raises :class:`paretone.errors.PlainError` if
    hibari-tts, pocketsphinx or jiwer is missing."""
    if not sentences:
        return {}
    found: dict[str, _ByVoice] = {}
    spoken = [Way(title, setting) for title, setting in ways.items()]
    for one in verdicts(sentences, voices, None, model, spoken, bundled.say):
        drawn = tuple(drawn_or_heard(take.trace.mel, take.samples, take.sample_rate) for take in one.syntheses)
        found.setdefault(one.speech, {})[one.voice] = replace(one, mels=one.mels or drawn)
    plain = found[next(iter(ways))]
    return {title: _compared(mine, found[ORIGINAL], plain) for title, mine in found.items()}


def _compared(one: _ByVoice, original: _ByVoice, plain: _ByVoice) -> dict[str, Any]:
    counted = counted_errors(list(one.values()))
    words = counted.pop("words")
    columns: dict[str, Any] = {**counted, "errors": f"{counted['errors']} of {words}"}
    if one is not original:
        columns["timbre to the voice (dB)"] = _apart(one, original, same=True)
        columns["timbre to the plain run (dB)"] = _apart(one, plain, same=True)
        equal = [
            _codes(mine) == _codes(theirs)
            for voice in plain
            for mine, theirs in zip(one[voice].syntheses, plain[voice].syntheses, strict=True)
        ]
        columns["codes equal"] = float(np.mean(np.concatenate([cells.flatten() for cells in equal])))
        columns["first codes equal"] = float(np.mean(np.concatenate([cells[0] for cells in equal])))
    return columns | {"timbre to other voices (dB)": _apart(one, original, same=False)}


def _apart(one: _ByVoice, other: _ByVoice, *, same: bool) -> float:
    """Mean timbre distance over all sentences, of each voice from itself (``same``) or from the others."""
    pairs = [(mine, theirs) for mine in one for theirs in other if (mine == theirs) == same]
    distances = [
        timbre_distance(*mels)
        for mine, theirs in pairs
        for mels in zip(one[mine].mels, other[theirs].mels, strict=True)
    ]
    return float(np.mean(distances))


def _codes(take: Synthesis) -> np.ndarray:
    trace = take.trace.demasking
    assert trace is not None
    return np.concatenate([one.codes for one in trace.passages], axis=1)


# --- Reference runs ---------------------------------------------------------------------------------------------------
OFFICIAL, EXACT = "official-equivalent (Qwen3 of transformers)", "+ all exact savings"
FULL_SIZE = MaskedConfig(
    Qwen3Config(
        hidden=1024,
        layers=28,
        heads=16,
        key_value_heads=8,
        head_width=128,
        feed_forward=3072,
        epsilon=1e-6,
        rope_theta=1e6,
    ),
    # The text table is only looked up: a small one takes as long as the released 151,676 rows.
    text_vocabulary=1024,
    codebooks=8,
    entries=1025,
)


def require_transformers(extra: str) -> None:
    """Raise :class:`PlainError` if transformers 5 or later, part of ``extra``, is not installed."""
    try:
        if int(version("transformers").partition(".")[0]) < 5:
            raise PackageNotFoundError
    except PackageNotFoundError:
        raise PlainError(
            "The official implementation needs the package transformers, 5 or later, which is not installed; "
            f"install it with: pip install -U paretone[{extra}]"
        ) from None


class UpstreamTransformer(nn.Module):
    """Qwen3 of ``transformers`` as OmniVoice runs it, with caches, and with the weights of ``plain``."""

    def __init__(self, plain: BidirectionalTransformer) -> None:
        super().__init__()
        require_transformers("omnivoice")
        from transformers import Qwen3Config as UpstreamConfig
        from transformers import Qwen3Model
        from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

        config = plain.config
        sizes = {
            "vocab_size": len(plain.embed_tokens.weight),
            "hidden_size": config.hidden,
            "intermediate_size": config.feed_forward,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.key_value_heads,
            "head_dim": config.head_width,
            "rms_norm_eps": config.epsilon,
            "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        }
        upstream = UpstreamConfig.from_dict(sizes, attn_implementation="sdpa")
        with without_weights():
            self.model = Qwen3Model(upstream)
        self.model.load_state_dict(plain.state_dict(), assign=True)
        # Buffers are on the meta device as well.
        self.model.rotary_emb = Qwen3RotaryEmbedding(upstream).to(plain.norm.weight.device)
        self.model.eval().requires_grad_(False)
        self.embed_tokens = self.model.embed_tokens

    def forward(self, embedded: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        return self.model(inputs_embeds=embedded, position_ids=positions, attention_mask=mask)[0]


def official(plain: MaskedNetwork) -> Callable[[MaskedRequest, float], Predictor]:
    """Predictor of a canvas as the official code runs it, with the weights of ``plain``."""
    with without_weights():
        upstream = MaskedNetwork(plain.config)
    upstream.load_state_dict(plain.state_dict(), assign=True)
    upstream.set_submodule("llm", UpstreamTransformer(plain.llm))
    return partial(PlainRun, upstream)


def random_network(config: MaskedConfig, device: torch.device) -> MaskedNetwork:
    """Network of ``config`` with random weights: a released one's size, without meaningful output."""
    torch.manual_seed(0)
    with without_weights():
        network = MaskedNetwork(config)
    network = network.to_empty(device=device)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.fill_(1.0) if name.endswith("norm.weight") else weight.normal_(std=0.02)
        network.codebook_layer_offsets.copy_(torch.arange(config.codebooks) * config.entries)
    return network.eval().requires_grad_(False)


def random_request(config: MaskedConfig, text: int, reference: int, frames: int, device: torch.device) -> MaskedRequest:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(config.text_vocabulary, (text,), generator=generator)
    codes = torch.randint(config.mask, (config.codebooks, reference), generator=generator)
    return MaskedRequest(ids.to(device), codes.to(device), frames)


class PlainRun:
    """A masked network on one canvas, run as in the official code: the reference for exact savings.

    Both branches, whatever the step's guidance, are a batch of two, the unconditional one padded to the other's length;
    text is embedded at every step; every row of both is scored; scores of the canvas are normalised three times.

    Source: k2-fsa/OmniVoice, ``_generate_iterative`` and ``_predict_tokens_with_scoring`` of
    ``omnivoice/models/omnivoice.py``. See :class:`paretone.sampling.demasking.Predictor`.
    """

    normalised = True
    operations = whole_operations = 0.0
    """Not counted."""

    def __init__(self, network: MaskedNetwork, request: MaskedRequest, guidance: float) -> None:
        self._network, self._request, self._guidance = network, request, guidance
        rows, frames, device = request.prefix + request.frames, request.frames, request.text.device
        self._mask = torch.zeros(2, 1, rows, rows, dtype=torch.bool, device=device)
        self._mask[0] = True
        self._mask[1, :, :frames, :frames] = True
        # Padding attends to itself, so that every row attends to something.
        padding = torch.arange(frames, rows, device=device)
        self._mask[1, :, padding, padding] = True
        counted = torch.arange(rows, device=device)
        positions = counted if request.positions is None else request.positions
        alone = counted.clone()
        if request.alone_positions is not None:
            alone[:frames] = request.alone_positions
        self._positions = torch.stack([positions, alone])

    @torch.inference_mode()
    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        network, request, frames = self._network, self._request, self._request.frames
        audio = torch.cat([request.reference, codes], dim=1)
        conditional = torch.cat([network.text(request.text[None]), network.audio(audio[None])], dim=1)
        padding = codes.new_full((len(codes), request.prefix), network.config.mask)
        alone = network.audio(torch.cat([codes, padding], dim=1)[None])
        hidden = network.llm(torch.cat([conditional, alone]), self._positions, self._mask)
        scores = network.scores(hidden).float()
        guided, plain = scores[0, :, request.prefix :], scores[1, :, :frames]
        if self._guidance == 0:
            return guided.log_softmax(-1)[:, first:last]
        guided, plain = guided.log_softmax(-1), plain.log_softmax(-1)
        return (guided + self._guidance * (guided - plain)).log_softmax(-1)[:, first:last]
