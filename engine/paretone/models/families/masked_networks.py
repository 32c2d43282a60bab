"""A masked model's network in the precisions that are asked for, made when they are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from paretone.last_used import LastUsed
from paretone.models.kernels import precision
from paretone.models.kernels.fused_masked import FusedMasked
from paretone.models.networks.masked_network import MaskedNetwork
from paretone.setting.plan import WHOLE

MOST_KEPT = 2
"""Maximum number kept in addition to the model's own."""


def offered(device: torch.device) -> tuple[str, ...]:
    """The precisions worth choosing on ``device``."""
    some = precision.offered(device)
    # On a GPU, converting between two types costs as much as the products gain.
    whole = (f"{one}{WHOLE}" for one in some if device.type == "cuda" and one in precision.DTYPES)
    return (*some, *whole)


class MaskedNetworks:
    """Hands out the network that a synthesis runs, ready and warm."""

    def __init__(self, plain: MaskedNetwork, precision: str, warm_up: Callable[[FusedMasked], None]) -> None:
        """``plain`` is on the model's device; ``precision`` is the model's own."""
        self.plain = plain
        self._precision = precision
        self.own = FusedMasked.of(plain, precision)
        self._warm_up = warm_up
        self._others: LastUsed[FusedMasked] = LastUsed(MOST_KEPT)
        """By precision."""

    def __len__(self) -> int:
        """Number of cached ones."""
        return 1 + len(self._others)

    @contextlib.contextmanager
    def standing_in(self, other: FusedMasked) -> Iterator[None]:
        """Run ``other`` in place of the model's own meanwhile: so benches time the official way of running it."""
        own, self.own = self.own, other
        try:
            yield
        finally:
            self.own = own

    def of(self, precision: str, status: Callable[[str], None] = lambda text: None) -> FusedMasked:
        """The network in ``precision``."""
        if precision == self._precision:
            return self.own

        def make() -> FusedMasked:
            status(f"Preparing {precision} …")
            made = FusedMasked.of(self.plain, precision)
            self._warm_up(made)
            return made

        return self._others.of(precision, make)
