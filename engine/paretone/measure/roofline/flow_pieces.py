"""One evaluation of a flow model, piece by piece: of diffusion transformers, and of E2-TTS's flat UNet transformer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.measure.roofline.clock import Run
from paretone.measure.roofline.report import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    JOINS,
    NORMS,
    PROJECTIONS,
    SAMPLING,
)
from paretone.models.f5.unett import UNetTLayer
from paretone.models.families.evaluations import FlowInternals, Phase
from paretone.models.networks.layers import SelfAttention, modulate

Piece = tuple[str, Run]


class Pieces:
    """A phase's evaluation by a diffusion transformer, on what goes into its modules at its first one."""

    joins = 0
    """Number of layers with a skip connection from an early one."""

    def __init__(self, works: FlowInternals, phase: Phase) -> None:
        self._works, self._phase = works, phase
        # The two kinds of backbone, and what their runs share, have different parts: each class takes its own.
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
        # Modules in fewer bits take float32, and convert it when they are called.
        self._inner = attention.inputs[0].weight.dtype
        self._query, self._key, self._value = attention.queries_keys_values(inputs[0].to(self._inner), self._run.rotary)
        self.mixed = self._attended()

    @property
    def heads(self) -> int:
        """Heads of each layer's attention."""
        return self._query.shape[1]

    def in_order(self) -> tuple[Piece, ...]:
        """All pieces of a forward."""
        layers = (piece for index in range(self.layers) for piece in self._in_layer(index))
        return (EMBEDDING, self._enter), *layers, (HEAD, self._head), (SAMPLING, self._sampling)

    def layer(self, index: int) -> Tensor:
        """One layer as a whole."""
        return self._backbone.layer(index, self.hidden, self._phase.first, self._run)

    def _enter(self) -> Tensor:
        return self._backbone.enter(self._works.sampler.noise, self._run)

    def _in_layer(self, index: int) -> list[Piece]:
        block, normed = self._backbone.blocks[index], self._normed[index]
        shift, scale, gate, *forward = self._run.modulations[self._phase.first, index]
        return [
            (NORMS, partial(modulate, self.hidden, shift, scale)),
            *self._attention(block.attention, normed),
            (NORMS, partial(torch.addcmul, self.hidden, gate, normed)),
            (NORMS, partial(modulate, self.hidden, forward[0], forward[1])),
            (FEED_FORWARD, partial(block.feed_forward, normed)),
            (NORMS, partial(torch.addcmul, self.hidden, forward[2], normed)),
        ]

    def _attention(self, attention: SelfAttention, normed: Tensor) -> list[Piece]:
        return [
            (PROJECTIONS, partial(self._project, attention, normed)),
            (ATTENTION, self._attended),
            (PROJECTIONS, partial(self._project_back, attention)),
        ]

    def _head(self) -> Tensor:
        backbone = self._backbone
        return backbone.project(backbone.leave(self.hidden, self.hidden, self._phase.first, self._run))

    def _sampling(self) -> Tensor:
        works = self._works
        return works.sampler.follow(works.sampler.noise, works.guided(self._velocities, self._phase.options), 0)

    def _project(self, attention: SelfAttention, normed: Tensor) -> object:
        return attention.queries_keys_values(normed.to(self._inner), self._run.rotary)

    def _attended(self) -> Tensor:
        mixed = F.scaled_dot_product_attention(self._query, self._key, self._value)
        return mixed.transpose(1, 2).flatten(-2)

    def _project_back(self, attention: SelfAttention) -> Tensor:
        return attention.output(self.mixed).float()


class FlatPieces(Pieces):
    """The same of E2-TTS's: norms without the time, which is a token, and late layers that join early ones."""

    def __init__(self, works: FlowInternals, phase: Phase) -> None:
        super().__init__(works, phase)
        self.joins = sum(parts.join is not None for parts in self._backbone.blocks)
        self._gate = self.hidden.new_ones(())

    def layer(self, index: int) -> Tensor:
        hidden, join = self.hidden, self._backbone.blocks[index].join
        if join is not None:
            hidden = self._join(join)
        return self._backbone.layer(index, hidden, self._run)

    def _enter(self) -> Tensor:
        return self._backbone.enter(self._works.sampler.noise, self._phase.first, self._run)

    def _in_layer(self, index: int) -> list[Piece]:
        parts: UNetTLayer = self._backbone.blocks[index]
        normed = self._normed[index]
        added = NORMS, partial(torch.addcmul, self.hidden, self._gate, normed)
        return [
            *([] if parts.join is None else [(JOINS, partial(self._join, parts.join))]),
            (NORMS, partial(parts.attention_norm, self.hidden)),
            *self._attention(parts.attention, normed),
            added,
            (NORMS, partial(parts.feed_forward_norm, self.hidden)),
            (FEED_FORWARD, partial(parts.feed_forward, normed)),
            added,
        ]

    def _head(self) -> Tensor:
        return self._backbone.leave(self.hidden)

    def _join(self, join: Callable[[Tensor], Tensor]) -> Tensor:
        return join(torch.cat([self.hidden, self.hidden], dim=-1))
