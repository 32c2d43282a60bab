"""Outputs and times of every module along a sampling run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.sampling.calibration_target import CalibrationTarget
from paretone.sampling.skipping import COMPUTE, LayerMemory
from paretone.speaking import scripted
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.preparation import knobs_of
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.views.view import Stages, Task

MODULES = {"attention": "Attention", "feed_forward": "Feed-forward"}
"""Modules that DiTReducio caches, by their names for a backbone's ``probe``, with titles."""

See = Callable[[int, int, str, Tensor], None]
"""Called with step, layer, one of :data:`MODULES` and its output before the gate, (branches·items, frames, width)."""


def target_of(task: Task) -> CalibrationTarget:
    """First passage of the sentence, ready for sampling. Raises :class:`SettingError` if there are no single steps."""
    knobs_of(task.setting)
    script = scripted(task.flow, task.utterance.text, task.utterance.voice, task.setting, prepared=False)
    return task.flow.calibration_target(script)


def run_through(
    target: CalibrationTarget, work: Stages, see: See | None = None, table: StrategyTable | None = None
) -> Tensor:
    """Take every step of ``target``, under ``table`` if given, and return the last state (items, frames, bands); each
    layer is a unit of ``work``."""
    state, layers = target.noise, target.backbone.layers
    plan = None if table is None else skip_plan(table)
    memories = [LayerMemory() for _ in range(layers)]
    for step in range(target.steps):

        def probe(layer: int, name: str, value: Tensor, step: int = step) -> None:
            if see is not None and name in MODULES:
                see(step, layer, name, value)

        entered = hidden = target.backbone.enter(state, step, target.run)
        for layer in range(layers):
            layer_plan = COMPUTE if plan is None else plan.at(step)[layer]
            watching = None if see is None else probe
            hidden = target.backbone.layer(layer, hidden, step, target.run, layer_plan, memories[layer], watching)
        left = target.backbone.leave(hidden, entered, step, target.run)
        state = target.follow(state, target.guide(left), step)
        work.done(layers)
    return state


class ModuleClock:
    """Measures every call of a module while entered: CPU time of all threads on a CPU, device events on a GPU."""

    def __init__(self, backbone: DiffusionTransformer, device: torch.device) -> None:
        self._backbone = backbone
        self._device = device
        self.reset()

    def reset(self) -> None:
        self._seconds = dict.fromkeys(MODULES, 0.0)
        self._events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    def read(self) -> dict[str, float]:
        if self._events:
            torch.cuda.synchronize(self._device)
        seconds = dict(self._seconds)
        for name, begin, end in self._events:
            seconds[name] += begin.elapsed_time(end) / 1000
        return seconds

    def __enter__(self) -> ModuleClock:
        for owner, method, name in self._clocked():
            setattr(owner, method, self._timed(name, getattr(owner, method)))
        return self

    def __exit__(self, *error: object) -> None:
        for owner, method, _ in self._clocked():
            delattr(owner, method)

    def _clocked(self) -> list[tuple[nn.Module, str, str]]:
        """Owner, method and module's name: attention is not always a call of its module."""
        forwards = [(block.feed_forward, "forward", "feed_forward") for block in self._backbone.blocks]
        return [(self._backbone, "attend", "attention"), *forwards]

    def _timed(self, name: str, run: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def timed(*given: Any, **named: Any) -> Tensor:
            begin = self._mark()
            output = run(*given, **named)
            end = self._mark()
            if self._device.type == "cuda":
                self._events.append((name, begin, end))
            else:
                self._seconds[name] += end - begin
            return output

        return timed

    def _mark(self) -> Any:
        """A CUDA event, or seconds on other devices."""
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        if self._device.type == "mps":
            torch.mps.synchronize()
            return time.perf_counter()
        return time.process_time()
