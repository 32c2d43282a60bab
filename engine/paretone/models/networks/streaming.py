"""Convolutional decoders in pieces, exactly: what they give of all pieces together is what they give of the whole.

A convolution that looks ahead gives its output so much later; what it still needs of earlier pieces is kept. At both
ends are the same zeros as in one run over everything, in front of every convolution again. Nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.models.networks.vocos import ConvNeXtBlock, VocosBackbone


class StreamedConvolution:
    """A convolution over time with an odd kernel, stride 1 and as many zeros at both ends as keep the length."""

    def __init__(self, convolution: nn.Conv1d) -> None:
        self._convolution = convolution
        self.reach = convolution.kernel_size[0] // 2
        """Delay: positions from an output to the last input that it depends on."""
        if convolution.padding != (self.reach,) or convolution.stride != (1,):
            raise ValueError(f"{convolution} does not keep the length, or takes other steps than 1.")
        self._kept = self._zeros()

    def push(self, x: Tensor) -> Tensor:
        """(1, channels, n) to what is final now, (1, channels', m)."""
        known = torch.cat([self._kept, x], dim=2)
        taps = 2 * self.reach
        self._kept = known[:, :, max(known.shape[2] - taps, 0) :]
        if known.shape[2] <= taps:
            return x.new_zeros(1, self._convolution.out_channels, 0)
        weights = self._convolution
        return functional.conv1d(known, weights.weight, weights.bias, groups=weights.groups)

    def finish(self) -> Tensor:
        """The remaining output, (1, channels', m)."""
        return self.push(self._zeros())

    def _zeros(self) -> Tensor:
        return self._convolution.weight.new_zeros(1, self._convolution.in_channels, self.reach)


class StreamedBlock:
    """A ConvNeXt block."""

    def __init__(self, block: nn.Module) -> None:
        if not isinstance(block, ConvNeXtBlock):
            raise TypeError(f"{type(block).__name__} is not a ConvNeXt block.")
        self._block = block
        self._convolution = StreamedConvolution(block.dwconv)
        self.reach = self._convolution.reach
        self._waiting = block.dwconv.weight.new_zeros(1, block.dwconv.in_channels, 0)
        """Inputs whose outputs are not final yet."""

    def push(self, x: Tensor) -> Tensor:
        """(1, width, n) to (1, width, m)."""
        self._waiting = torch.cat([self._waiting, x], dim=2)
        return self._added(self._convolution.push(x))

    def finish(self) -> Tensor:
        """The remaining output, (1, width, m)."""
        return self._added(self._convolution.finish())

    def _added(self, convolved: Tensor) -> Tensor:
        count = convolved.shape[2]
        if not count:
            return convolved
        x, self._waiting = self._waiting[:, :, :count], self._waiting[:, :, count:]
        return self._block.added(x, convolved)


class StreamedBlocks:
    """ConvNeXt blocks one after another."""

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        """Raises :class:`TypeError` for blocks of another kind."""
        self._blocks = [StreamedBlock(block) for block in blocks]
        self.reach = sum(block.reach for block in self._blocks)

    def push(self, x: Tensor) -> Tensor:
        """(1, width, n) to (1, width, m)."""
        for block in self._blocks:
            x = block.push(x)
        return x

    def finish(self) -> Tensor:
        """The remaining output, (1, width, m): each block ends after the one before it."""
        x = self._blocks[0].finish()
        for block in self._blocks[1:]:
            x = torch.cat([block.push(x), block.finish()], dim=2)
        return x


class StreamedOverlapAdd:
    """The inverse short-time Fourier transform with centred frames."""

    def __init__(self, window: Tensor, hop: int, tail: int = 0) -> None:
        """``tail``: how many hops after the middle of the last frame are given as well."""
        self._window, self._hop, self._tail = window, hop, tail
        self._parts = len(window) // hop
        if self._parts * hop != len(window) or self._parts % 2:
            raise ValueError(f"A window of {len(window)} samples is not an even number of hops of {hop}.")
        self._sum, self._envelope = (window.new_zeros(self._parts - 1, hop) for _ in range(2))
        """Partial sums of the hops that further frames will add to."""
        self._frames = 0

    def push(self, spectrum: Tensor) -> Tensor:
        """(1, window // 2 + 1, n) complex to the samples (m,) that are final now."""
        count = spectrum.shape[2]
        if not count:
            return self._sum.new_zeros(0)
        frames = torch.fft.irfft(spectrum[0].mT, len(self._window)) * self._window
        rest = self._sum.new_zeros(count, self._hop)
        total, envelope = torch.cat([self._sum, rest]), torch.cat([self._envelope, rest])
        for part in range(self._parts):
            columns = slice(part * self._hop, (part + 1) * self._hop)
            total[part : part + count] += frames[:, columns]
            envelope[part : part + count] += self._window[columns] ** 2
        self._sum, self._envelope = total[count:], envelope[count:]
        # Half of the first window lies before the beginning.
        first = max(self._parts // 2 - self._frames, 0)
        self._frames += count
        return (total[first:count] / envelope[first:count]).flatten()

    def finish(self) -> Tensor:
        """The samples up to the middle of the last frame, and of the tail after it, (m,)."""
        last = max(self._parts // 2 - 1 + self._tail, 0) if self._frames else 0
        first = min(max(self._parts // 2 - self._frames, 0), last)
        return (self._sum[first:last] / self._envelope[first:last]).flatten()


class StreamedBackbone:
    """Mel frames to hidden frames; see :class:`paretone.models.networks.vocos.VocosBackbone`."""

    def __init__(self, backbone: VocosBackbone) -> None:
        self._backbone = backbone
        self._embed = StreamedConvolution(backbone.embed)
        self._blocks = StreamedBlocks(backbone.convnext)
        self.reach = self._embed.reach + self._blocks.reach
        """Frames that a hidden frame lies after the last mel frame."""

    def push(self, mel: Tensor) -> Tensor:
        """(1, bands, n) to the hidden frames that are final now, (1, m, width)."""
        return self._left(self._blocks.push(self._entered(self._embed.push(mel))))

    def finish(self) -> Tensor:
        """The rest, (1, m, width)."""
        hidden = self._blocks.push(self._entered(self._embed.finish()))
        return self._left(torch.cat([hidden, self._blocks.finish()], dim=2))

    def _entered(self, embedded: Tensor) -> Tensor:
        return self._backbone.norm(embedded.transpose(1, 2)).transpose(1, 2)

    def _left(self, hidden: Tensor) -> Tensor:
        return self._backbone.final_layer_norm(hidden.transpose(1, 2))
