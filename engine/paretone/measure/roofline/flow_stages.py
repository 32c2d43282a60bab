"""A flow model's synthesis by component: conditioning once, evaluations by branches, decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from paretone.measure.roofline import counts, report
from paretone.measure.roofline.clock import Run, TimedComponent, TimedPhase, once
from paretone.models.f5.unett import UNetT, UNetTLayer
from paretone.models.families.evaluations import FlowInternals, Phase
from paretone.models.kernels.attention import attend
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.models.networks.layers import SelfAttention, modulation
from paretone.wording import percent

Piece = tuple[str, Run]


class Pieces:
    """A phase's evaluation by a diffusion transformer, on the inputs of its first evaluation."""

    joins = 0
    """Number of layers with a skip connection from an early one."""

    def __init__(self, works: FlowInternals, phase: Phase) -> None:
        self._works, self._phase = works, phase
        # The two kinds of backbone and their runs have different parts; each class uses its own.
        self._backbone, self._run = cast("Any", works.backbone), cast("Any", phase.run)
        inputs: list[Tensor] = []
        states: list[Tensor] = []

        def probe(layer: int, name: str, value: Tensor) -> None:
            if name == "attention_input":
                inputs.append(value)
            if name == "output":
                states.append(value)

        self._velocities = self._backbone.velocity(works.sampler.noise, phase.first, self._run, probe=probe)
        self._normed, self.hidden = inputs, states[0]
        self.layers = len(inputs)
        attention = self._backbone.blocks[0].attention
        # Quantised modules take float32 and convert it on call.
        self._inner = attention.inputs[0].weight.dtype
        self._query, self._key, self._value = attention.queries_keys_values(inputs[0].to(self._inner), self._run.rotary)
        self.mixed = self._attended()

    @property
    def heads(self) -> int:
        return self._query.shape[1]

    def in_order(self) -> tuple[Piece, ...]:
        works, phase, backbone, run = self._works, self._phase, self._backbone, self._run
        noise, follow = works.sampler.noise, works.sampler.follow
        return (
            (report.EMBEDDING, lambda: backbone.enter(noise, phase.first, run)),
            *(piece for index in range(self.layers) for piece in self._in_layer(index)),
            (report.HEAD, self._head),
            (report.SAMPLING, lambda: follow(noise, works.guided(self._velocities, phase.options), 0)),
        )

    def layer(self, index: int) -> Tensor:
        return self._backbone.layer(index, self.hidden, self._phase.first, self._run)

    def _in_layer(self, index: int) -> list[Piece]:
        block, normed = self._backbone.blocks[index], self._normed[index]
        shift, scale, gate, *forward = self._run.modulations[self._phase.first, index]
        return [
            (report.NORMS, lambda: modulation(shift, scale)(self.hidden)),
            *self._attention(block.attention, normed),
            (report.NORMS, partial(torch.addcmul, self.hidden, gate, normed)),
            (report.NORMS, lambda: modulation(forward[0], forward[1])(self.hidden)),
            (report.FEED_FORWARD, partial(block.feed_forward, normed)),
            (report.NORMS, partial(torch.addcmul, self.hidden, forward[2], normed)),
        ]

    def _attention(self, attention: SelfAttention, normed: Tensor) -> list[Piece]:
        return [
            (report.PROJECTIONS, lambda: attention.queries_keys_values(normed.to(self._inner), self._run.rotary)),
            (report.ATTENTION, self._attended),
            (report.PROJECTIONS, lambda: attention.output(self.mixed).float()),
        ]

    def _head(self) -> Tensor:
        backbone = self._backbone
        return backbone.project(backbone.leave(self.hidden, self.hidden, self._phase.first, self._run))

    def _attended(self) -> Tensor:
        return attend(self._query, self._key, self._value).transpose(1, 2).flatten(-2)


class FlatPieces(Pieces):
    """Pieces of E2-TTS: norms without time, which is a token, and late layers joined with early ones."""

    def __init__(self, works: FlowInternals, phase: Phase) -> None:
        super().__init__(works, phase)
        self.joins = sum(parts.join is not None for parts in self._backbone.blocks)
        self._gate = self.hidden.new_ones(())

    def layer(self, index: int) -> Tensor:
        join = self._backbone.blocks[index].join
        return self._backbone.layer(index, self.hidden if join is None else self._join(join), self._run)

    def _in_layer(self, index: int) -> list[Piece]:
        parts: UNetTLayer = self._backbone.blocks[index]
        normed = self._normed[index]
        added = report.NORMS, partial(torch.addcmul, self.hidden, self._gate, normed)
        return [
            *([] if parts.join is None else [(report.JOINS, partial(self._join, parts.join))]),
            (report.NORMS, partial(parts.attention_norm, self.hidden)),
            *self._attention(parts.attention, normed),
            added,
            (report.NORMS, partial(parts.feed_forward_norm, self.hidden)),
            (report.FEED_FORWARD, partial(parts.feed_forward, normed)),
            added,
        ]

    def _head(self) -> Tensor:
        return self._backbone.leave(self.hidden)

    def _join(self, join: Callable[[Tensor], Tensor]) -> Tensor:
        return join(torch.cat([self.hidden, self.hidden], dim=-1))


WIDTHS = {"float32": (4, 4), "bfloat16": (2, 2), "float16": (2, 2), "int8": (4, 1)}
"""Bytes per activation and per weight by precision."""


def flow_stages(works: FlowInternals) -> tuple[TimedPhase, ...]:
    """``works`` as phases. Runs it once to find the skipped parts. A backbone without accessible layers is one
    component."""
    state = works.integrate()
    note, shape = "time vectors are kept from the first run", f"{works.audio_seconds:.1f} s of audio"
    conditioning = once(
        "conditioning", "Conditioning", report.CONDITIONING, works.begin, f"{works.frames} frames", note
    )
    decoder = once("decoder", "Decoder", report.DECODER, lambda: works.decode(state), shape)
    return conditioning, *(_evaluating(works, number) for number in range(len(works.phases))), decoder


def _evaluating(works: FlowInternals, number: int) -> TimedPhase:
    phase = works.phases[number]
    end = works.phases[number + 1].first if number + 1 < len(works.phases) else len(works.times)
    forwards, rows = end - phase.first, phase.counts.branches
    branches = f"{rows} branch{'es' if rows > 1 else ''} × {works.frames} frames"
    title = "Evaluations" if len(works.phases) == 1 else ("Guided evaluations", "Unguided evaluations")[number]
    whole, whole_forwards = _whole(works, phase, forwards)
    name = ("evaluation", "unguided")[number]
    if not isinstance(works.backbone, DiffusionTransformer | UNetT):
        run, share = (works.integrate, len(works.times)) if whole is None else (whole, whole_forwards)
        return replace(once(name, title, report.NETWORK, run, branches), forwards=forwards / share)
    precision = works.plan.precision
    share = _share(works, phase, end)
    note = "" if share == 1 else f"{percent(share)} of the layers' operations are computed"
    pieces = FlatPieces(works, phase) if isinstance(works.backbone, UNetT) else Pieces(works, phase)
    length, width, inner = pieces.hidden.shape[1], pieces.hidden.shape[2], pieces.mixed.shape[-1]
    tokens, layers = rows * length, pieces.layers
    forward_inner = round(phase.counts.feed_forward / (4 * length * width))
    activation, weight = WIDTHS[precision]
    # Only products with weights compute in integers.
    attended = "float32" if precision == "int8" else precision
    part = partial(TimedComponent, calls=layers, share=share, note=note)
    # In addition to the two norms, two gated additions: each reads the stream and the summand, and writes the stream.
    added = counts.Work(4 * tokens * width, 2 * 3 * 4 * tokens * width)
    joins = (
        [TimedComponent(report.JOINS, counts.linear(tokens, 2 * width, width, 4), pieces.joins)] if pieces.joins else []
    )
    parts = (
        TimedComponent(report.EMBEDDING),
        *joins,
        part(
            report.PROJECTIONS, counts.projections(tokens, width, inner, inner, activation, weight), precision=precision
        ),
        part(report.ATTENTION, counts.attention(rows, length, inner, inner, WIDTHS[attended][0]), precision=attended),
        part(
            report.FEED_FORWARD,
            counts.feed_forward(tokens, width, forward_inner, False, activation, weight),
            precision=precision,
        ),
        part(report.NORMS, counts.norm(2 * tokens * width, 4) + added),
        TimedComponent(report.HEAD),
        TimedComponent(report.SAMPLING),
    )
    each = tuple(partial(pieces.layer, index) for index in range(layers))
    shape = f"{branches}, {layers} layers of {width}, {pieces.heads} heads"
    return TimedPhase(name, title, forwards, parts, pieces.in_order(), whole, whole_forwards, each, shape=shape)


def _whole(works: FlowInternals, phase: Phase, forwards: int) -> tuple[Callable[[], object] | None, int]:
    """Function that runs whole forwards of a phase, and their number."""
    noise = works.sampler.noise
    if not (works.plan.computes_in_part or works.plan.guidance.decides):
        return lambda: works.sampler.follow(noise, works.evaluations(noise, phase.first), 0), 1
    # Skipped parts or branches differ between evaluations, so only all of them together are a whole.
    return (works.integrate, forwards) if len(works.phases) == 1 else (None, 1)


def _share(works: FlowInternals, phase: Phase, end: int) -> float:
    """Computed share of the layers' operations in a phase, mean over its evaluations."""
    whole = phase.counts.evaluation
    fixed = replace(phase.counts, layers=0).evaluation
    computed = [max(0.0, one - fixed) / (whole - fixed) for one in works.evaluations.operations[phase.first : end]]
    return sum(computed) / len(computed)
