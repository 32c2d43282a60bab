"""A flow model's synthesis by component: conditioning once, evaluations by their branches, decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from paretone.errors import SettingError
from paretone.measure.roofline import counts
from paretone.measure.roofline.clock import TimedComponent, TimedPhase
from paretone.measure.roofline.flow_pieces import FlatPieces, Pieces
from paretone.measure.roofline.report import (
    ATTENTION,
    CONDITIONING,
    DECODER,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    JOINS,
    NORMS,
    PROJECTIONS,
    SAMPLING,
)
from paretone.models.f5.unett import UNetT
from paretone.models.families.evaluations import FlowInternals, Phase
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.wording import percent

WIDTHS = {"float32": (4, 4), "bfloat16": (2, 2), "float16": (2, 2), "int8": (4, 1)}
"""Bytes of an activation and of a weight in each precision."""


def flow_stages(works: FlowInternals, title: str) -> tuple[TimedPhase, ...]:
    """``works`` as stages. Runs it once, to see what is skipped. Raises :class:`paretone.errors.SettingError` with the
    model's ``title`` for a backbone without layers that can be looked at."""
    if not isinstance(works.backbone, DiffusionTransformer | UNetT):
        raise SettingError(f"The backbone of {title} cannot be measured by component.")
    state = works.integrate()
    conditioning = TimedPhase(
        "conditioning",
        "Conditioning",
        1,
        (TimedComponent(CONDITIONING, note="time vectors are kept from the first run"),),
        ((CONDITIONING, works.begin),),
        shape=f"{works.frames} frames",
    )
    decoder = TimedPhase(
        "decoder",
        "Decoder",
        1,
        (TimedComponent(DECODER),),
        ((DECODER, lambda: works.decode(state)),),
        shape=f"{works.audio_seconds:.1f} s of audio",
    )
    return conditioning, *(_evaluating(works, number) for number in range(len(works.phases))), decoder


def _evaluating(works: FlowInternals, number: int) -> TimedPhase:
    phase = works.phases[number]
    end = works.phases[number + 1].first if number + 1 < len(works.phases) else len(works.times)
    forwards, rows = end - phase.first, phase.run.branches
    precision = works.plan.precision
    share = _share(works, phase, end)
    note = "" if share == 1 else f"{percent(share)} of the layers' operations are computed"
    pieces = FlatPieces(works, phase) if isinstance(works.backbone, UNetT) else Pieces(works, phase)
    length, width, inner = pieces.hidden.shape[1], pieces.hidden.shape[2], pieces.mixed.shape[-1]
    tokens, layers = rows * length, pieces.layers
    forward_inner = round(phase.counts.feed_forward / (4 * length * width))
    activation, weight = WIDTHS[precision]
    # What computes in whole numbers are products with weights alone.
    attended = "float32" if precision == "int8" else precision
    part = partial(TimedComponent, calls=layers, share=share, note=note)
    # Two gated additions, in addition to two norms: they read the stream and what is added to it, and write the stream.
    added = counts.Work(4 * tokens * width, 2 * 3 * 4 * tokens * width)
    joins = [TimedComponent(JOINS, counts.linear(tokens, 2 * width, width, 4), pieces.joins)] if pieces.joins else []
    parts = (
        TimedComponent(EMBEDDING),
        *joins,
        part(PROJECTIONS, counts.projections(tokens, width, inner, inner, activation, weight), precision=precision),
        part(
            ATTENTION,
            counts.attention(rows, length, inner, inner, WIDTHS[attended][0]),
            precision=attended,
        ),
        part(
            FEED_FORWARD,
            counts.feed_forward(tokens, width, forward_inner, False, activation, weight),
            precision=precision,
        ),
        part(NORMS, counts.norm(2 * tokens * width, 4) + added),
        TimedComponent(HEAD),
        TimedComponent(SAMPLING),
    )
    branches = f"{rows} branch{'es' if rows > 1 else ''} × {works.frames} frames"
    title = "Evaluations" if len(works.phases) == 1 else ("Guided evaluations", "Unguided evaluations")[number]
    whole, whole_forwards = _whole(works, phase, forwards)
    return TimedPhase(
        ("evaluation", "unguided")[number],
        title,
        forwards,
        parts,
        pieces.in_order(),
        whole,
        whole_forwards,
        tuple(partial(pieces.layer, index) for index in range(layers)),
        shape=f"{branches}, {layers} layers of {width}, {pieces.heads} heads",
    )


def _whole(works: FlowInternals, phase: Phase, forwards: int) -> tuple[Callable[[], object] | None, int]:
    """Function that runs whole forwards of a phase, and their number."""
    noise = works.sampler.noise
    if not (works.plan.computes_in_part or works.plan.guidance.decides):
        return lambda: works.sampler.follow(noise, works.evaluations(noise, phase.first), 0), 1
    # What is skipped, or which branches run, differs between evaluations, so that only all of them are a whole.
    return (works.integrate, forwards) if len(works.phases) == 1 else (None, 1)


def _share(works: FlowInternals, phase: Phase, end: int) -> float:
    """Computed share of the layers' operations in a phase, mean over its evaluations."""
    whole = phase.counts.evaluation
    fixed = replace(phase.counts, layers=0).evaluation
    computed = [max(0.0, one - fixed) / (whole - fixed) for one in works.evaluations.operations[phase.first : end]]
    return sum(computed) / len(computed)
