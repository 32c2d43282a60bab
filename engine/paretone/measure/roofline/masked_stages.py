"""A masked model's synthesis by component: conditioning of a canvas, steps by branches, decoder."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.measure.roofline import counts, report
from paretone.measure.roofline.clock import Run, TimedComponent, TimedPhase, once, run_all
from paretone.measure.roofline.counts import Work
from paretone.models.families.masked import MaskedInternals, guide_of
from paretone.models.kernels.fused_masked import MaskedRequest, MaskedRun, rotated
from paretone.models.kernels.masked_pass import FusedLayer, Rows
from paretone.sampling.demasking import Canvas, Guide, SeededCanvasNoise, candidates, confidence
from paretone.sampling.demasking_schedule import Block, commit_counts

TITLES = {Guide.BOTH: "Guided steps", Guide.REUSED: "Steps with reused guidance", Guide.ALONE: "Unguided steps"}
"""Titles of steps by guidance, if there are several kinds."""


def masked_stages(works: MaskedInternals) -> tuple[TimedPhase, ...]:
    config, request = works.network.config, works.request
    if works.plan.schedule is not None:
        raise SettingError(
            "The number of steps is decided while speaking, so their passes cannot be foreseen; measure without the "
            "technique that decides it."
        )
    steps = _steps(works)
    block = works.blocks[measured_block(works)]
    blocks = works.plan.blocks
    if blocks is not None and blocks.look_ahead is not None:
        request = request.shortened(min(block.end + blocks.look_ahead, request.frames))
    run = works.network.begin(request, works.rules.guidance)
    canvas = Canvas(config.codebooks, works.request.frames, config.mask, works.network.device)
    begin = partial(works.network.begin, request, works.rules.guidance)
    stages = [
        once("conditioning", "Conditioning", report.CONDITIONING, begin, f"{request.prefix} rows before the canvas")
    ]
    guides = {guide for guide, _ in steps}
    for (guide, short), forwards in steps.items():
        begun, suffix, more = run, "", ""
        if short:
            begun = _begun(works, request)
            begun.stay_short()
            suffix, more = f"-{begun.short_name}", f", {begun.short_title}"
        stepping = _Stepping(works, begun, canvas, block, guide, request.frames)
        title = "Steps" if len(guides) == 1 else TITLES[guide]
        name = {Guide.BOTH: "evaluation", Guide.REUSED: "reused", Guide.ALONE: "unguided"}[guide]
        name = name if len(guides) > 1 else "evaluation"
        stages.append(stepping.stage(f"{name}{suffix}", f"{title}{more}", forwards))
    codes = torch.zeros_like(canvas.codes)
    shape = f"{works.audio_seconds:.1f} s of audio" + (f", in {len(works.blocks)} blocks" if blocks else "")
    return *stages, once("decoder", "Decoder", report.DECODER, partial(_hear, works, codes), shape)


def measured_block(works: MaskedInternals) -> int:
    """Index of the middle block, whose steps represent all."""
    return len(works.blocks) // 2


def _begun(works: MaskedInternals, request: MaskedRequest) -> MaskedRun:
    run = works.begin(request)
    if not isinstance(run, MaskedRun):
        raise SettingError("The passes of a technique in use cannot be taken apart; measure without it.")
    return run


def _steps(works: MaskedInternals) -> dict[tuple[Guide, bool], int]:
    """Number of steps by kind: guidance, and whether anything is skipped."""
    found: dict[tuple[Guide, bool], int] = {}
    codebooks, alone = works.network.config.codebooks, works.rules.guidance == 0
    run = _begun(works, works.request)
    for block in works.blocks:
        counts_of = commit_counts(codebooks * block.frames, block.steps, works.rules.shift)
        guides = [
            Guide.ALONE if alone else guide_of(works.plan.guidance, step)
            for step, count in enumerate(counts_of)
            if count
        ]
        for kind in zip(guides, run.short_passes(guides), strict=True):
            found[kind] = found.get(kind, 0) + 1
    return found


def _hear(works: MaskedInternals, codes: Tensor) -> None:
    decoder = works.decoder()
    for block in works.blocks:
        decoder.push(codes[:, block.start : block.end])
    decoder.finish()


class _Stepping:
    """One step in pieces, on inputs of its shapes."""

    def __init__(
        self, works: MaskedInternals, run: MaskedRun, canvas: Canvas, block: Block, guide: Guide, frames: int
    ) -> None:
        self._works, self._network, self._run = works, works.network, run
        self._canvas, self._block, self._guide, self._frames = canvas, block, guide, frames
        network, config = works.network, works.network.config.transformer
        # Guidance can be reused only after a guided step.
        run.scores(canvas.codes, block.start, block.end, Guide.BOTH)
        self._scores = run.scores(canvas.codes, block.start, block.end, guide)
        kept = run.kept_rows
        self._rows: Rows = run.branches(guide).without_prefix(kept) if kept else run.branches(guide)
        self._extend = run.memory
        self._seen = tuple(
            part.stop - part.start + (kept if number == 0 else 0) for number, part in enumerate(self._rows.parts)
        )
        generator = torch.Generator().manual_seed(0)

        def noise(*shape: int, like: Tensor = network.like) -> Tensor:
            return torch.randn(shape, generator=generator).to(like)

        rows, self._wanted = self._rows.parts[-1].stop, (block.end - block.start) * len(self._rows.parts)
        self._hidden = noise(rows, config.hidden)
        self._taken = noise(self._wanted, config.hidden)
        self._canvas_rows = noise(frames, config.hidden)
        self._projected = network.project(self._hidden, 0)
        self._turned = rotated(self._projected[0], self._rows)
        self._spans = self._rows.wanted(block.start, block.end, frames)
        self._computed = tuple(index for index in range(len(network.layers)) if index not in run.left_out)

    def stage(self, name: str, title: str, forwards: int) -> TimedPhase:
        network, config, block = self._network, self._network.config.transformer, self._block
        precision = str(network.inner).partition(".")[2]
        if precision == "float32" and self._works.plan.precision.startswith("int8"):
            precision = "int8"
        activation = network.inner.itemsize
        weight = 1 if precision == "int8" else activation
        stream = network.like.element_size()
        rows, wanted, depth = len(self._hidden), self._wanted, len(self._computed)
        queries, keys = config.width, config.key_width
        inward = counts.linear((depth - 1) * rows + self._frames, config.hidden, queries + 2 * keys, activation, weight)
        outward = counts.linear((depth - 1) * rows + wanted, queries, config.hidden, activation, weight)
        # The formulas count one weight; each layer has one.
        more = (depth - 1) * weight * config.hidden * (2 * queries + 2 * keys)
        forward = counts.feed_forward(
            (depth - 1) * rows + wanted, config.hidden, config.feed_forward, True, activation, weight
        ) + Work(0, (depth - 1) * weight * 3 * config.hidden * config.feed_forward)
        attended = sum(
            (
                counts.attention(1, part.stop - part.start, queries, keys, activation, seen) * ((depth - 1) / depth)
                + counts.attention(1, block.frames, queries, keys, activation, seen) * (1 / depth)
                for part, seen in zip(self._rows.parts, self._seen, strict=True)
            ),
            Work(),
        )
        elements = 2 * rows * config.hidden
        normed = counts.norm(elements, stream) + Work(elements, 3 * stream * elements)
        part = partial(TimedComponent, calls=depth)
        parts = (
            TimedComponent(
                report.EMBEDDING, counts.looked_up(self._frames, config.hidden, network.config.codebooks, stream)
            ),
            part(report.PROJECTIONS, (inward + outward + Work(0, more)) * (1 / depth), precision=precision),
            part(report.ATTENTION, attended, precision="float32" if precision == "int8" else precision),
            part(report.FEED_FORWARD, forward * (1 / depth), precision=precision),
            part(report.NORMS, normed),
            TimedComponent(report.HEAD, counts.linear(block.frames, config.hidden, network.config.rows, stream)),
            TimedComponent(report.SAMPLING, counts.log_softmax(self._scores.numel())),
        )
        branches = len(self._rows.parts)
        return TimedPhase(
            name,
            title,
            forwards,
            parts,
            self._pieces(),
            lambda: self._choose(self._run.scores(self._canvas.codes, block.start, block.end, self._guide)),
            layers=tuple(partial(run_all, self._in_layer(index)) for index in self._computed),
            shape=f"{rows} rows in {branches} branch{'es' if branches > 1 else ''}, {block.frames} frames filled "
            f"in, {depth} layers of {config.hidden}, {config.heads} heads",
        )

    def _choose(self, scores: Tensor) -> None:
        """Like :func:`paretone.sampling.demasking.demask`, without committing: every step has the same input."""
        rules, codes, noise = self._works.rules, self._canvas.codes, SeededCanvasNoise(0, self._network.device)
        _, _, likeliest = candidates(scores, rules, lambda: noise.classes(0, *scores.shape))
        sure = confidence(likeliest, rules, lambda: noise.positions(0, *likeliest.shape))
        sure = sure.masked_fill(codes[:, self._block.start : self._block.end] != self._canvas.mask, -torch.inf)
        sure.flatten().topk(min(self._block.frames, sure.numel()))

    def _pieces(self) -> tuple[tuple[str, Run], ...]:
        network = self._network
        codes = self._canvas.codes[:, : self._frames]
        layers = (piece for index in self._computed for piece in self._in_layer(index))
        frames = self._taken[: self._block.frames]
        return (
            (report.EMBEDDING, partial(network.audio, codes)),
            *layers,
            (report.HEAD, partial(network.head, frames)),
            (report.SAMPLING, partial(self._choose, self._scores)),
        )

    def _in_layer(self, index: int) -> tuple[tuple[str, Run], ...]:
        """Pieces of one layer: the first projects the canvas only, the last computes only the wanted rows."""
        network, layer = self._network, self._network.layers[index]
        is_last = index == len(network.layers) - 1
        entering = self._canvas_rows if index == 0 else self._hidden
        leaving = self._taken if is_last else self._hidden
        normed = network.normed(leaving, layer.feed_forward_norm)
        attend = partial(self._attend, self._spans if is_last else None, index)
        return (
            (report.PROJECTIONS, partial(self._project, entering, index)),
            (report.ATTENTION, attend),
            (report.PROJECTIONS, partial(layer.output, attend())),
            (report.NORMS, partial(torch.add, leaving, leaving)),
            (report.NORMS, partial(network.normed, leaving, layer.feed_forward_norm)),
            (report.FEED_FORWARD, partial(_expand, layer, normed)),
            (report.NORMS, partial(torch.add, leaving, leaving)),
        )

    def _project(self, hidden: Tensor, layer: int) -> None:
        self._network.project(hidden, layer)
        rotated(self._turned, self._rows)

    def _attend(self, wanted: tuple[slice, ...] | None, layer: int) -> Tensor:
        extend = None if self._extend is None else partial(self._extend, layer)
        return self._network.attended(self._turned, self._projected[1], self._rows, wanted, extend)


def _expand(layer: FusedLayer, normed: Tensor) -> Tensor:
    gate, up = layer.gate_up(normed).chunk(2, dim=-1)
    return layer.down(F.silu(gate) * up)
