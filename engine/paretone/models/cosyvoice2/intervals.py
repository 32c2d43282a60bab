"""Weights with which CosyVoice 2's flow carries mel frames over intervals of time.

A file has the keys of the estimator in ``flow.pt``, and those of one more perceptron,
``decoder.estimator.time_mlp.interval_mlp.{0,2}.{weight,bias}``; its metadata are those of
:mod:`paretone.models.files.interval_weights`, with the SHA-256 of ``flow.pt`` as ``base``. The encoder and all else
stay those of ``flow.pt``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from paretone.models.base import IntervalWeights
from paretone.models.cosyvoice2.flow_estimator import Estimator, EstimatorIntervalEmbedding
from paretone.models.cosyvoice2.token_to_mel import TokenToMel, new_estimator
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights

PREFIX = "decoder.estimator."


def add_interval(estimator: Estimator) -> None:
    """Let ``estimator`` take intervals, without effect until the new perceptron has learnt."""
    own = estimator.time_mlp
    embedding = EstimatorIntervalEmbedding(own.linear_1.in_features, own.linear_2.out_features)
    embedding = embedding.to(own.linear_1.weight.device, own.linear_1.weight.dtype)
    embedding.linear_1, embedding.linear_2 = own.linear_1, own.linear_2
    last = embedding.interval_mlp[2]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    estimator.time_mlp = embedding


def official(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` of an estimator by their keys in ``flow.pt``."""
    return {PREFIX + name: value for name, value in weights.items()}


def interval_estimator(flow: TokenToMel, weights: IntervalWeights) -> Estimator:
    """An estimator as that of ``flow`` with such weights, on its device, ready for inference. Raises
    :class:`paretone.errors.CheckpointError`."""

    def make() -> Estimator:
        made = new_estimator(flow.config)
        add_interval(made)
        return made

    path = Path(weights.path)
    named = {name.removeprefix(PREFIX): value for name, value in read_float_weights(path).items()}
    estimator = loaded_strictly(make, named, str(path))
    return estimator.to(flow.noise.device).eval().requires_grad_(False)
