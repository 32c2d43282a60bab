"""Every view on three branches: the bundled MegaTTS 3."""

import math

import pytest

from paretone.errors import SettingError
from paretone.models import load_model
from paretone.models.base import SpeechModel, Utterance
from paretone.models.catalogue import entry, voices
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.techniques.ditreducio.threshold_views import thresholds
from paretone.views import compute_view
from paretone.views.view import Task
from tests.workload import workload

MODEL = "megatts3-mini"
STEPS = workload(3, 2)
QUICK = {
    "module-latencies": {"count": 1, "rounds": 3},
    "ablation": {"count": 1, "sentences": 1},
    "tables": {"count": 2},
    "objectives": {"count": 1, "budgets": 1, "sentences": 1},
    "order-of-convergence": {"doublings": 1},
}
PANELS = dict.fromkeys(("temporal-redundancy", "branch-redundancy"), 4)
PANELS |= dict.fromkeys(("attention-similarity", "attention-maps"), 3)
PANELS |= {"tables": 2} | dict.fromkeys(("module-latencies", "objectives", "order-of-convergence"), 1)
"""Panels per figure; the ablation has one more if word error rates can be measured."""


@pytest.fixture(scope="module")
def model() -> SpeechModel:
    return load_model(MODEL, device="cpu")


def task(model: SpeechModel, **knobs: object) -> Task:
    setting = Setting(MODEL, entry(MODEL).options_with(steps=STEPS))
    return Task(model, Utterance("Rice.", voices(MODEL)[0]), setting, Values(knobs), Observer())


@pytest.mark.slow
@pytest.mark.parametrize("name", workload([*PANELS, "ablation"], [*PANELS][1:3]))
def test_it_is_computed(model: SpeechModel, name: str) -> None:
    figure = compute_view(name, task(model, **QUICK.get(name, {})))
    assert len(figure.panels) == PANELS[name] if name in PANELS else len(figure.panels) >= 2
    if name == "branch-redundancy":
        assert figure.panels[2].title == "Attention: speaker and text and unconditional"
    for panel in figure.panels:
        values = [line[3] for line in panel.lines() if not isinstance(line[3], str)]
        assert not values or any(math.isfinite(value) for value in values), panel.title


def test_the_effect_of_w_is_refused_with_the_reason(model: SpeechModel) -> None:
    with pytest.raises(SettingError, match="guided differently from F5-TTS, so there are no CFG-free weights"):
        compute_view("guidance-weight", task(model))


def test_thresholds_go_to_the_published_largest(model: SpeechModel) -> None:
    assert thresholds(task(model, count=6, largest=0.0)) == (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
    assert thresholds(task(model, count=2, largest=0.3)) == (0.15, 0.3)
