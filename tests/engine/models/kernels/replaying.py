"""Models whose forwards are recorded without a graphics card.

A recorder stands in that runs the function again and puts the result where the first one was: what a recording reads
and leaves behind is as it is with CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from paretone.models import load_model
from paretone.models.kernels.graphs import GraphCache
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from tests.engine import small_speech, speaking
from tests.engine.models.omnivoice import small_release


class Again:
    """Records by running again; counts how often it recorded and replayed."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        output = run()
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            output.copy_(run())

        return replay, output


class Told(Observer):
    """Keeps the lines that a take is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def status(self, text: str) -> None:
        self.lines.append(text)


def graphs(**knobs: object) -> UsedTechnique:
    return UsedTechnique("graphs", Values({"bucket": 64, "most": 8} | knobs))


def flow(record: Callable, variant: str = "") -> small_speech.F5Speech:
    model = small_speech.load("small", "", variant, "cpu", lambda text: None, lambda: None)
    model._graphs = GraphCache(record)
    return model


def language(root: Path, record: Callable):
    model = speaking.load(root)
    model.info = model.info.__class__(**{**vars(model.info), "lacking": ()})
    model._graphs = GraphCache(record)
    return model


def masked(tmp_path: Path, record: Callable):
    model = load_model("OmniVoice", folder=str(small_release.write_release(tmp_path / "model")), device="cpu")
    model.info = model.info.__class__(**{**vars(model.info), "lacking": ()})
    model._graphs = GraphCache(record)
    return model
