"""Every view for flow models: cancelled within a step, progress to the end, knobs that are checked, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import Cancelled, SettingError
from paretone.models.base import Utterance
from paretone.models.catalogue import harvard_sentences, voice
from paretone.models.f5.adapter import F5Speech
from paretone.observer import Observer
from paretone.setting.knobs import Values, checked, defaults
from paretone.views import compute_view, views
from paretone.views.quality import judged_utterances
from tests.engine.small_speech import LAYERS, setting
from tests.engine.views.viewing import QUICK, STEPS, computed, load, task, write_weights

EVERY = [
    pytest.param(one.name, marks=pytest.mark.slow if one.name == "ablation" else ())
    for one in views()
    if "flow" in one.families
]


@pytest.fixture
def model(tmp_path: Path) -> F5Speech:
    return load(write_weights(tmp_path))


class Interrupted(Observer):
    """Cancelled after so many reports of progress; counts the layers that are computed afterwards."""

    def __init__(self, model: F5Speech, after: int) -> None:
        self.left, self.layers_since = after, 0
        self.reported: list[tuple[int, int]] = []
        for index in range(LAYERS):
            model._backbone.block(index).attention.register_forward_hook(self.count)

    def count(self, *call: object) -> None:
        self.layers_since += self.left <= 0

    def check(self) -> None:
        if self.left <= 0:
            raise Cancelled

    def progress(self, done: int, total: int) -> None:
        self.check()
        self.reported.append((done, total))
        self.left -= 1


@pytest.mark.parametrize("after", [1, 7])
@pytest.mark.parametrize("name", EVERY)
def test_a_view_is_cancelled_within_a_step(model: F5Speech, name: str, after: int) -> None:
    if name == "attention-similarity" or after == 1 or name in QUICK:
        observer = Interrupted(model, after)
        with pytest.raises(Cancelled):
            compute_view(name, replace(task(model, observer), knobs=Values(QUICK.get(name, {}))))
        assert observer.layers_since <= LAYERS


@pytest.mark.parametrize("name", EVERY)
def test_progress_rises_to_the_whole(model: F5Speech, name: str) -> None:
    observer = Interrupted(model, 10**9)
    compute_view(name, replace(task(model, observer), knobs=Values(QUICK.get(name, {}))))
    done = [one for one, _ in observer.reported]
    assert done == sorted(done)
    assert len({total for _, total in observer.reported}) == 1
    assert 0.9 * observer.reported[-1][1] <= done[-1] <= observer.reported[-1][1]


def test_views_declare_knobs_that_pass_their_own_check() -> None:
    names = [one.name for one in views()]
    assert len(set(names)) == len(names)
    for one in views():
        knobs = one.knobs(22)
        assert checked(knobs, {}, one.title) == defaults(knobs)


def test_unknown_views_and_knobs_and_other_families_are_refused(model: F5Speech) -> None:
    with pytest.raises(SettingError, match="known views: temporal-redundancy"):
        compute_view("beauty", task(model))
    with pytest.raises(SettingError, match="First layer must lie between 1 and 3"):
        computed(model, "temporal-redundancy", first_layer=4)
    with pytest.raises(SettingError, match="one column per Euler step"):
        compute_view("temporal-redundancy", replace(task(model), setting=setting(STEPS, solver="midpoint")))
    model.info = replace(model.info, family="speech-lm")
    with pytest.raises(SettingError, match="load another model"):
        computed(model, "tables")


def test_the_selected_sentence_is_not_judged_for_something_may_be_calibrated_on_it() -> None:
    first, second, third = harvard_sentences()[:3]
    other = Utterance("Another sentence.", voice())
    assert [one.text for one in judged_utterances(other, 2)] == [first, second]
    selected = Utterance(f" {first}", voice("bella"))
    found = judged_utterances(selected, 30)
    assert [one.text for one in found[:2]] == [second, third] and len(found) == 30
    assert {one.voice.id for one in found} == {"bella"}
