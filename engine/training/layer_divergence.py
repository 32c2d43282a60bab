"""What a model says without one of its layers, teacher-forced: the cheap measures of a layer's importance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from engine.techniques.spade.importance import bootstrapped
from engine.techniques.spade.losses import each_divergence
from engine.techniques.spade.record import COSINE, DIVERGENCE, LayerImportance
from engine.training.spoken_tokens import TokenBatch
from engine.training.token_network import TokenNetwork


@torch.inference_mode()
def skipping_divergence(
    network: TokenNetwork,
    batches: Sequence[TokenBatch],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LayerImportance:
    """KL between what ``network`` predicts with all layers and without each, in nats, with intervals over
    utterances."""
    layers, rows = network.transformer.config.layers, []
    for number, batch in enumerate(batches):
        wanted = network(batch).logits
        owner = batch.predicting.nonzero()[:, 0]
        found = torch.zeros(len(batch.ids), layers)
        for layer in range(layers):
            apart = each_divergence(network(batch, skip=(layer,)).logits, wanted)
            found[:, layer] = torch.zeros(len(batch.ids)).index_add_(0, owner, apart) / batch.predicting.sum(1)
            progress(number * layers + layer + 1, len(batches) * layers)
        rows.append(found.numpy())
    return bootstrapped(DIVERGENCE, np.concatenate(rows))


@torch.inference_mode()
def turning(network: TokenNetwork, batches: Sequence[TokenBatch]) -> LayerImportance:
    """One minus the cosine between what goes into a layer and what comes out, mean over positions; with intervals over
    utterances."""
    layers, rows = network.transformer.config.layers, []
    for batch in batches:
        seen = network(batch, outputs=range(layers))
        states = [seen.embedded, *(seen.outputs[layer] for layer in range(layers))]
        heard = batch.heard
        turned = [1 - F.cosine_similarity(states[layer], states[layer + 1], dim=-1) for layer in range(layers)]
        rows.append(torch.stack([(one * heard).sum(1) / heard.sum(1) for one in turned], dim=1).numpy())
    return bootstrapped(COSINE, np.concatenate(rows))
