"""The effect of w on CFG-free weights, against takes that are spoken one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.measure.fidelity import log_mel_distance
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques.guidance_free import view
from paretone.views import compute_view
from paretone.views.quality import judged_utterances
from tests.engine.small_speech import setting
from tests.engine.views.viewing import SAID, STEPS, computed, load, task, write_weights


def test_the_effect_of_w(tmp_path: Path) -> None:
    model = load(write_weights(tmp_path))
    figure = computed(model, "guidance-weight")
    distances = {curve.name: curve for curve in figure.panels[0].curves}
    sentences = judged_utterances(SAID, 2)

    def spoken(**options: object) -> list:
        of = setting(STEPS, **options)
        return [synthesise(model, one.text, one.voice, of).trace.mel for one in sentences]

    used = setting(STEPS).with_technique(UsedTechnique("guidance_free", Values(weight=0.5)))
    free = [synthesise(model, one.text, one.voice, used).trace.mel for one in sentences]
    guided, alone = spoken(guidance=1.0), spoken(guidance=0.0)
    for name, mels in ((view.CFG_FREE, free), (view.ALONE, alone)):
        expected = sum(log_mel_distance(one, two) for one, two in zip(guided, mels, strict=True)) / 2
        assert distances[name].x == (0.5,)
        assert distances[name].y == pytest.approx((expected,))
    # As the sampler option is labelled; s is sway's.
    assert figure.panels[0].title.startswith("Distance to guidance g =")
    assert "from guidance g = 1.00" in figure.caption
    assert "no checkpoint for w = 0.1, 0.2, 0.3, 0.4, 0.6" in figure.caption


def test_a_model_without_such_weights_says_how_to_come_by_some() -> None:
    with pytest.raises(SettingError, match="has no CFG-free weights to compare; train some"):
        compute_view("guidance-weight", task(load()))
