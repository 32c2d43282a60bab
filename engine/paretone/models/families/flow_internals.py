"""Internals of a flow model's synthesis: its pieces, to be timed one by one, and the attention of a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from paretone.models.families.evaluations import Evaluations, Phase
from paretone.models.families.passages import Decoded, Sampler
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.sampling.calibration_target import diagonal_similarity
from paretone.sampling.evaluating import Evaluated, Run
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan

LARGEST_MAP = 512
"""Captured attention maps are pooled to at most this many queries and keys."""


@dataclass(frozen=True)
class FlowInternals:
    """The first passage of a synthesis, about to be sampled, and what is done with it, for profiling."""

    backbone: Evaluated
    plan: FlowPlan
    phases: tuple[Phase, ...]
    """Evaluations with the same branches, in order."""
    evaluations: Evaluations
    """The velocity that the sampler follows."""
    sampler: Sampler
    times: np.ndarray
    """When the backbone is evaluated, in order."""
    frames: int
    passages: int
    """Total number of passages."""
    audio_seconds: float
    """Seconds of audio of the first passage."""
    begin: Callable[[], Run]
    """Computes again what its evaluations share."""
    guided: Callable[[Tensor, Values], Tensor]
    """The velocities of all branches to the one that is followed."""
    integrate: Callable[[], Tensor]
    """Samples it, all evaluations, and gives the last state."""
    decode: Callable[[Tensor], Decoded]
    """The last state to audio."""


def attention_of(
    backbone: DiffusionTransformer, layer: int, state: Tensor, evaluation: int, run: Any
) -> tuple[np.ndarray, tuple[float, ...]]:
    """Attention of ``layer`` at one evaluation of ``state``: maps (branches, queries, keys), mean over heads, and the
    diagonal similarity of each branch. All layers up to it compute everything, under any plan."""
    looked: dict[str, Tensor] = {}

    def probe(index: int, name: str, value: Tensor) -> None:
        if index == layer and name == "attention_input":
            looked[name] = value

    hidden = backbone.enter(state, run)
    for index in range(layer + 1):
        hidden = backbone.layer(index, hidden, evaluation, run, probe=probe)
    maps = backbone.attention_maps(layer, looked["attention_input"], run, LARGEST_MAP)
    query, key = backbone.attention_map_inputs(layer, looked["attention_input"])
    similarities = tuple(diagonal_similarity(query[row][None], key[row][None]) for row in range(len(query)))
    return maps.float().cpu().numpy(), similarities
