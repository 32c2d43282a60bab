"""Shared by tests of views: a real model of a few thousand weights, a text that it speaks, and a view of it."""

from dataclasses import replace
from pathlib import Path

from paretone.models.base import Utterance
from paretone.models.f5.adapter import F5Speech
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.views import compute_view
from paretone.views.figure import Figure
from paretone.views.view import Task
from tests.engine import small_speech
from tests.engine.small_speech import VOICE, save_cfg_free, setting

STEPS = 4
SAID = Utterance("One.", VOICE)
QUICK = {
    "module-latencies": {"count": 2, "rounds": 3},
    "ablation": {"count": 2, "sentences": 2},
    "tables": {"count": 3},
    "objectives": {"count": 2, "budgets": 2, "sentences": 1},
    "guidance-weight": {"sentences": 2},
    "weights-over-training": {"sentences": 1},
}


def write_weights(folder: Path) -> Path:
    """A folder for :func:`load` with CFG-free weights for w = 0.5, and a stage of their training."""
    (folder / "weights").touch()
    save_cfg_free(folder / "half.safetensors", 0.5)
    save_cfg_free(folder / "half-after-1-steps.safetensors", 0.5, steps="1", stage="true")
    return folder


def load(folder: Path | str = "") -> F5Speech:
    return small_speech.load("small", str(folder), "", "cpu", lambda text: None, lambda: None)


def task(model: F5Speech, observer: object = None, **changes: object) -> Task:
    return Task(model, SAID, setting(STEPS), Values(), observer or Observer(), **changes)


def computed(model: F5Speech, name: str, **knobs: object) -> Figure:
    return compute_view(name, replace(task(model), knobs=Values(QUICK.get(name, {}), **knobs)))
