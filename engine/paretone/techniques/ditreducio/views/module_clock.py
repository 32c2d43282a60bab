"""Times of a backbone's modules, all layers together."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.techniques.ditreducio.views.outputs import MODULES


class ModuleClock:
    """Clocks every call of a module while it is entered: processor time of all threads on a CPU, the device's own
    events on a GPU."""

    def __init__(self, backbone: DiffusionTransformer, device: torch.device) -> None:
        self._backbone = backbone
        self._device = device
        self._hooks: list = []
        self.reset()

    def reset(self) -> None:
        """Begin at nothing."""
        self._seconds = dict.fromkeys(MODULES, 0.0)
        self._events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    def read(self) -> dict[str, float]:
        """Seconds of each kind of module since the last reset."""
        if self._events:
            torch.cuda.synchronize(self._device)
        seconds = dict(self._seconds)
        for name, begin, end in self._events:
            seconds[name] += begin.elapsed_time(end) / 1000
        return seconds

    def __enter__(self) -> ModuleClock:
        for index in range(self._backbone.layers):
            block = self._backbone.block(index)
            for name in MODULES:
                self._clock(name, getattr(block, name))
        return self

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _clock(self, name: str, module: nn.Module) -> None:
        # A layer's module does not call itself, so that one mark is enough.
        begun: list = []

        def before(module: nn.Module, inputs: object) -> None:
            begun.append(self._mark())

        def after(module: nn.Module, inputs: object, output: object) -> None:
            begin, end = begun.pop(), self._mark()
            if self._device.type == "cuda":
                self._events.append((name, begin, end))
            else:
                self._seconds[name] += end - begin

        self._hooks += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def _mark(self) -> Any:
        """An event on a GPU, else seconds."""
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        if self._device.type == "mps":
            torch.mps.synchronize()
            return time.perf_counter()
        return time.process_time()
