"""A flow model's synthesis, taken apart: conditioning once, evaluations by their branches, decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

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
from engine.models.layers import SelfAttention, modulate

WIDTHS = {"float32": (4, 4), "bfloat16": (2, 2), "float16": (2, 2), "int8": (4, 1)}
"""Bytes of an activation and of a weight in each precision."""


def flow_stages(works: FlowWorkings, title: str) -> tuple[Stage, ...]:
    """``works`` as stages. Runs it once, to see what is skipped. Raises :class:`engine.errors.SettingError` for a
    backbone without layers that can be looked at."""
    backbone = require_layers(works.backbone, title)
    state = works.integrate()
    conditioning = Stage(
        "conditioning",
        "Conditioning",
        1,
        (Part(CONDITIONING, note="time vectors are kept from the first run"),),
        ((CONDITIONING, works.begin),),
        shape=f"{works.frames} frames",
    )
    decoder = Stage(
        "decoder",
        "Decoder",
        1,
        (Part(DECODER),),
        ((DECODER, lambda: works.decode(state)),),
        shape=f"{works.audio_seconds:.1f} s of audio",
    )
    return conditioning, *(_evaluating(works, backbone, number) for number in range(len(works.phases))), decoder


def _evaluating(works: FlowWorkings, backbone: DiffusionTransformer, number: int) -> Stage:
    phase = works.phases[number]
    end = works.phases[number + 1].first if number + 1 < len(works.phases) else len(works.times)
    forwards, layers, rows = end - phase.first, backbone.layers, phase.run.branches
    precision = works.engagement.precision
    share = _share(works, phase, end)
    note = "" if share == 1 else f"{share:.0%} of the layers' operations are computed"
    pieces = _Pieces(works, backbone, phase)
    tokens, width, inner = rows * works.frames, pieces.hidden.shape[-1], pieces.mixed.shape[-1]
    forward_inner = round(phase.counts.feed_forward / (4 * works.frames * width))
    activation, weight = WIDTHS[precision]
    # What computes in whole numbers are products with weights alone.
    attended = "float32" if precision == "int8" else precision
    part = partial(Part, calls=layers, share=share, note=note)
    # Beside two norms, two gated additions: they read the stream and what is added to it, and write the stream.
    added = counts.Work(4 * tokens * width, 2 * 3 * 4 * tokens * width)
    parts = (
        Part(EMBEDDING),
        part(PROJECTIONS, counts.projections(tokens, width, inner, inner, activation, weight), precision=precision),
        part(
            ATTENTION,
            counts.attention(rows, works.frames, inner, inner, WIDTHS[attended][0]),
            precision=attended,
        ),
        part(
            FEED_FORWARD,
            counts.feed_forward(tokens, width, forward_inner, False, activation, weight),
            precision=precision,
        ),
        part(NORMS, counts.norm(2 * tokens * width, 4) + added),
        Part(HEAD),
        Part(SAMPLING),
    )
    branches = f"{rows} branch{'es' if rows > 1 else ''} × {works.frames} frames"
    title = "Evaluations" if len(works.phases) == 1 else ("Guided evaluations", "Unguided evaluations")[number]
    whole, whole_forwards = _whole(works, phase, forwards)
    return Stage(
        ("evaluation", "unguided")[number],
        title,
        forwards,
        parts,
        pieces.in_order(),
        whole,
        whole_forwards,
        tuple(partial(backbone.layer, index, pieces.hidden, phase.first, phase.run) for index in range(layers)),
        shape=f"{branches}, {layers} layers of {width}, {pieces.query.shape[1]} heads",
    )


def _whole(works: FlowWorkings, phase: Phase, forwards: int) -> tuple[Callable[[], object] | None, int]:
    """What to run for whole forwards of a phase, and how many these are."""
    engaged, noise = works.engagement, works.sampler.noise
    if engaged.table is None and engaged.error_threshold is None and engaged.first_block_threshold is None:
        return lambda: works.sampler.follow(noise, works.evaluations(noise, phase.first), 0), 1
    # What is skipped differs from evaluation to evaluation, so that only all of them together are a whole.
    return (works.integrate, forwards) if len(works.phases) == 1 else (None, 1)


def _share(works: FlowWorkings, phase: Phase, end: int) -> float:
    """How much of the layers' operations is computed in a phase, mean over its evaluations."""
    whole = phase.counts.evaluation
    fixed = replace(phase.counts, layers=0).evaluation
    computed = [max(0.0, one - fixed) / (whole - fixed) for one in works.evaluations.operations[phase.first : end]]
    return sum(computed) / len(computed)


class _Pieces:
    """A phase's evaluation, piece by piece, on what goes into its modules at its first one."""

    def __init__(self, works: FlowWorkings, backbone: DiffusionTransformer, phase: Phase) -> None:
        self._works, self._backbone, self._phase = works, backbone, phase
        inputs: list[Tensor] = []
        states: list[Tensor] = []

        def look(layer: int, name: str, value: Tensor) -> None:
            if name == "attention_input":
                inputs.append(value)
            if name == "output":
                states.append(value)

        self._velocities = backbone.velocity(works.sampler.noise, phase.first, phase.run, look=look)
        self._normed, self.hidden = inputs, states[0]
        attention = backbone.block(0).attention
        # Modules in fewer bits take float32, and convert it when they are called.
        self._inner = attention.inputs[0].weight.dtype
        parts = attention.queries_keys_values(inputs[0].to(self._inner), phase.run.rotary)
        self.query, self._key, self._value = parts
        self.mixed = self._attended()

    def in_order(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        works, backbone, phase, noise = self._works, self._backbone, self._phase, self._works.sampler.noise
        pieces: list[tuple[str, Callable[[], object]]] = [(EMBEDDING, lambda: backbone.enter(noise, phase.run))]
        for index in range(backbone.layers):
            block, normed = backbone.block(index), self._normed[index]
            shift, scale, gate, *forward = phase.run.modulations[phase.first, index]
            pieces += [
                (NORMS, partial(modulate, self.hidden, shift, scale)),
                (PROJECTIONS, partial(self._project, block.attention, normed)),
                (ATTENTION, self._attended),
                (PROJECTIONS, partial(self._project_back, block.attention)),
                (NORMS, partial(torch.addcmul, self.hidden, gate, normed)),
                (NORMS, partial(modulate, self.hidden, forward[0], forward[1])),
                (FEED_FORWARD, partial(block.feed_forward, normed)),
                (NORMS, partial(torch.addcmul, self.hidden, forward[2], normed)),
            ]

        def head() -> Tensor:
            return backbone.project(backbone.leave(self.hidden, self.hidden, phase.first, phase.run))

        def sampling() -> Tensor:
            return works.sampler.follow(noise, works.guided(self._velocities, phase.options), 0)

        return *pieces, (HEAD, head), (SAMPLING, sampling)

    def _project(self, attention: SelfAttention, normed: Tensor) -> object:
        return attention.queries_keys_values(normed.to(self._inner), self._phase.run.rotary)

    def _attended(self) -> Tensor:
        return F.scaled_dot_product_attention(self.query, self._key, self._value).transpose(1, 2).flatten(-2)

    def _project_back(self, attention: SelfAttention) -> Tensor:
        return attention.output(self.mixed).float()
