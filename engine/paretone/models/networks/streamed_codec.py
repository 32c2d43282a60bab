"""The decoder of :mod:`paretone.models.networks.quantised_mel` in pieces, exactly: codes to frames as they come."""

from __future__ import annotations

import torch
from torch import Tensor

from paretone.models.networks.quantised_mel import QuantisedMel
from paretone.models.networks.streaming import StreamedBlocks


class StreamedCodec:
    """One passage; what it remembers is the passage's own."""

    def __init__(self, codec: QuantisedMel, voice: Tensor) -> None:
        """``voice`` (bands,) as :meth:`QuantisedMel.decode` takes it."""
        self._codec, self._voice = codec, voice[None]
        self._tokens = StreamedBlocks(codec.decoder["tokens"].children())
        self._frames = StreamedBlocks(codec.decoder["frames"].children())

    def push(self, codes: Tensor) -> Tensor:
        """The next tokens' codes (n, …) to the frames that are final now, (m, bands)."""
        return self._left(self._frames.push(self._codec.spread(self._tokens.push(self._entered(codes)))))

    def finish(self, codes: Tensor) -> Tensor:
        """The last tokens' codes (n, …), of which there may be none, to the rest of the frames, (m, bands)."""
        hidden = torch.cat([self._tokens.push(self._entered(codes)), self._tokens.finish()], dim=2)
        return self._left(torch.cat([self._frames.push(self._codec.spread(hidden)), self._frames.finish()], dim=2))

    def whole(self, codes: Tensor) -> Tensor:
        """All codes (n, …) to all frames (m, bands) at once, independently of the rest."""
        return self._codec.decode(codes[None], self._voice)[0]

    def _entered(self, codes: Tensor) -> Tensor:
        """Ready for the first block, (1, width, n)."""
        return self._codec.entered(codes[None], self._voice)

    def _left(self, hidden: Tensor) -> Tensor:
        return self._codec.left(hidden)[0]
