"""A flow model's synthesis, taken apart: conditioning once, evaluations by their branches, decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.measure.roofline import counts
from engine.measure.roofline.clock import Part, Stage
from engine.measure.roofline.report import (
    ATTENTION,
    CONDITIONING,
    DECODER,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    NORMS,
    PROJECTIONS,
    SAMPLING,
)
from engine.models.diffusion import DiffusionTransformer
from engine.models.evaluations import Phase, require_layers
from engine.models.flow import FlowWorkings
from engine.models.layers import modulate

WIDTHS = {"float32": (4, 4), "bfloat16": (2, 2), "float16": (2, 2), "int8": (4, 1)}
"""Bytes of an activation and of a weight in each precision."""


def flow_stages(works: FlowWorkings, title: str) -> tuple[Stage, ...]:
    """``works`` as stages. Runs it once, to see what is skipped. Raises :class:`engine.errors.SettingError` for a
    backbone without layers that can be looked at."""
    backbone = require_layers(works.backbone, title)
    state = works.integrate()
    skips = min(works.evaluations.shares, default=1.0) < 1 and len(works.phases) == 1
    conditioning = Stage(
        "conditioning",
        "Conditioning",
        1,
        (Part(CONDITIONING, works.begin, None, precision="float32", note="time vectors are kept from the first run"),),
        shape=f"{works.frames} frames",
    )
    evaluating = [_evaluating(works, backbone, number, skips) for number in range(len(works.phases))]
    decoder = Stage(
        "decoder",
        "Decoder",
        1,
        (Part(DECODER, lambda: works.decode(state), None),),
        shape=f"{works.audio_seconds:.1f} s of audio",
    )
    return conditioning, *evaluating, decoder


def _evaluating(works: FlowWorkings, backbone: DiffusionTransformer, number: int, skips: bool) -> Stage:
    phase = works.phases[number]
    end = works.phases[number + 1].first if number + 1 < len(works.phases) else len(works.times)
    forwards = end - phase.first
    layers, rows = backbone.layers, phase.run.branches
    precision = works.engagement.precision
    hidden, pieces = _inputs(works, backbone, phase)
    width = hidden.shape[-1]
    tokens = rows * works.frames
    inner = pieces.query.shape[1] * pieces.query.shape[3]
    forward_inner = round(phase.counts.feed_forward / (4 * works.frames * width))
    activation, weight = WIDTHS[precision]
    # What computes in whole numbers are products with weights alone.
    attended = "float32" if precision == "int8" else precision
    share = _share(works, phase) if skips else 1.0
    note = "" if share == 1 else f"{share:.0%} of the layers' operations are computed"
    noise = works.sampler.noise
    velocities = backbone.velocity(noise, phase.first, phase.run)
    blocks = [backbone.block(index) for index in range(layers)]
    modulations = phase.run.modulations[phase.first]
    dtype = pieces.query.dtype

    def projections() -> None:
        for index, block in enumerate(blocks):
            block.attention.queries_keys_values(pieces.normed[index].to(dtype), phase.run.rotary)
            block.attention.output(pieces.mixed).float()

    def attention() -> None:
        for _ in blocks:
            F.scaled_dot_product_attention(pieces.query, pieces.key, pieces.value).transpose(1, 2).flatten(-2)

    def feed_forward() -> None:
        for index, block in enumerate(blocks):
            block.feed_forward(pieces.normed[index])

    def norms() -> None:
        for index in range(layers):
            shift, scale, gate, *more = modulations[index]
            modulate(hidden, shift, scale)
            torch.addcmul(hidden, gate, hidden)
            modulate(hidden, more[0], more[1])
            torch.addcmul(hidden, more[2], hidden)

    def head() -> None:
        backbone.project(backbone.leave(hidden, hidden, phase.first, phase.run))

    def sampling() -> None:
        works.sampler.follow(noise, works.guided(velocities, phase.options), 0)

    def part(name: str, run: Callable[[], None], work: counts.Work, within: str) -> Part:
        return Part(name, run, work, layers, share, within, note)

    heads = pieces.query.shape[1]
    parts = (
        Part(EMBEDDING, lambda: backbone.enter(noise, phase.run), None),
        part(PROJECTIONS, projections, counts.projections(tokens, width, inner, inner, activation, weight), precision),
        part(
            ATTENTION,
            attention,
            counts.attention(rows, works.frames, inner, inner, 2 if attended in ("bfloat16", "float16") else 4),
            attended,
        ),
        part(
            FEED_FORWARD,
            feed_forward,
            counts.feed_forward(tokens, width, forward_inner, False, activation, weight),
            precision,
        ),
        # Two norms and two gated additions, which read the stream and what is added to it, and write the stream.
        part(
            NORMS,
            norms,
            counts.norm(2 * tokens * width, 4) + counts.Work(4 * tokens * width, 24 * tokens * width),
            "float32",
        ),
        Part(HEAD, head, None),
        Part(SAMPLING, sampling, None),
    )
    title = "Evaluations" if len(works.phases) == 1 else ("Guided evaluations", "Unguided evaluations")[number]
    shape = (
        f"{rows} branch{'es' if rows > 1 else ''} × {works.frames} frames, {layers} layers of {width}, {heads} heads"
    )
    whole = works.integrate if skips else _one_evaluation(works, phase)
    return Stage(
        "evaluation" if number == 0 else "unguided",
        title,
        forwards,
        parts,
        whole,
        forwards if skips else 1,
        tuple(_layer(backbone, index, hidden, phase) for index in range(layers)),
        shape=shape,
    )


def _one_evaluation(works: FlowWorkings, phase: Phase) -> Callable[[], Tensor]:
    noise = works.sampler.noise
    return lambda: works.sampler.follow(noise, works.evaluations(noise, phase.first), 0)


def _layer(backbone: DiffusionTransformer, index: int, hidden: Tensor, phase: Phase) -> Callable[[], Tensor]:
    return lambda: backbone.layer(index, hidden, phase.first, phase.run)


def _share(works: FlowWorkings, phase: Phase) -> float:
    """How much of the layers' operations is computed, mean over the evaluations."""
    whole = phase.counts.evaluation
    fixed = replace(phase.counts, layers=0).evaluation
    computed = [max(0.0, one - fixed) / (whole - fixed) for one in works.evaluations.operations]
    return sum(computed) / len(computed)


class _Pieces:
    """What goes into the modules of the layers."""

    def __init__(self, backbone: DiffusionTransformer, inputs: list[Tensor], phase: Phase) -> None:
        self.normed = inputs
        attention = backbone.block(0).attention
        weight = attention.inputs[0].weight
        parts = attention.queries_keys_values(inputs[0].to(weight.dtype), phase.run.rotary)
        self.query, self.key, self.value = parts
        self.mixed = F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(-2)


def _inputs(works: FlowWorkings, backbone: DiffusionTransformer, phase: Phase) -> tuple[Tensor, _Pieces]:
    """A hidden state, and every layer's modulated input, as they are at the phase's first evaluation."""
    inputs: list[Tensor] = []
    states: list[Tensor] = []

    def look(layer: int, name: str, value: Tensor) -> None:
        if name == "attention_input":
            inputs.append(value)
        if name == "output":
            states.append(value)

    backbone.velocity(works.sampler.noise, phase.first, phase.run, look=look)
    return states[0], _Pieces(backbone, inputs, phase)
