"""A masked network run as the official code runs it: the reference for exact savings, in tests and benches.

Both branches are a batch of two, the unconditional one padded to the length of the other; text is embedded at every
step; every row of both is scored; scores of the canvas are normalised three times. Synthesis uses
:mod:`paretone.models.kernels.fused_masked` instead.

Source: k2-fsa/OmniVoice, ``_generate_iterative`` and ``_predict_tokens_with_scoring`` of
``omnivoice/models/omnivoice.py``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.kernels.fused_masked import MaskedRequest
from paretone.models.networks.masked_network import MaskedNetwork
from paretone.sampling.demasking import Guide


class PlainRun:
    """A network on one canvas. See :class:`paretone.sampling.demasking.Predictor`; every step computes both branches,
    whatever its guide."""

    normalised = True
    operations = whole_operations = 0.0
    """They are not counted."""

    def __init__(self, network: MaskedNetwork, request: MaskedRequest, guidance: float) -> None:
        self._network, self._request, self._guidance = network, request, guidance
        rows, frames, device = request.prefix + request.frames, request.frames, request.text.device
        self._mask = torch.zeros(2, 1, rows, rows, dtype=torch.bool, device=device)
        self._mask[0] = True
        self._mask[1, :, :frames, :frames] = True
        # What pads sees itself, so that no row sees nothing.
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
