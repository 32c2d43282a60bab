"""Techniques as cards: what they say of this model and device, their order, and what is folded."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from paretone.models import catalogue
from paretone.sampling.schedules import EPSS
from paretone.session.events import EngineReady, ModelLoaded
from paretone.setting.knobs import Choice
from paretone.setting.library import TakeSummary
from paretone.techniques import techniques
from paretone.techniques.resolving import known
from paretone_app import numbers
from paretone_app.features.setup.cards import NOT_MEASURED, StepGrid
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.theme import style_sheet
from tests.app.conftest import on_screen
from tests.app.presenters import Presenter, calibrated
from tests.app.test_numbers import NAMES, WITH_POINT
from tests.engine.studies.test_gains import MACHINE, take
from tests.workload import workload

NO_CUDA = "CUDA graphs need an NVIDIA GPU; this device is a CPU."


@pytest.fixture
def presenter(presenter: Presenter) -> Presenter:
    presenter.state.follow(EngineReady(0, "cpu", ("cpu",), MACHINE))
    return presenter


@pytest.fixture
def panel(panel: SetupPanel) -> SetupPanel:
    panel.resize(panel.minimumSizeHint().width(), 700)
    return panel


def load(presenter: Presenter, model: str, **changes: object) -> None:
    """A model as a processor without anything special loads it."""
    presenter.state.loading.load_model(model)
    lacking = (("recording", NO_CUDA),)
    info = replace(known(model), fingerprint="a" * 64, device="CPU: 2 cores", device_type="cpu", lacking=lacking)
    presenter.state.follow(ModelLoaded(presenter.sent[-1].job, replace(info, **changes), 0.1))


def shown(panel: SetupPanel) -> list[str]:
    groups, layout = panel.techniques.groups, panel.techniques.layout()
    seen = (name for name in groups if groups[name].isVisibleTo(panel))
    return sorted(seen, key=lambda name: layout.indexOf(groups[name]))


def test_a_card_says_whether_it_applies_before_it_is_used(panel: SetupPanel, presenter: Presenter) -> None:
    cards = panel.techniques.groups
    presenter.state.selection.switch("ditreducio", False)
    assert cards["ditreducio"].state.text().startswith("Switch it on, then calibrate")
    assert cards["guidance_free"].state.text().startswith("Train it first")
    assert cards["steps"].state.text() == f"Applies here · {NOT_MEASURED}"
    assert cards["steps"].benefit.text() == "A few well-placed steps instead of many"
    state = calibrated(presenter)
    assert cards["ditreducio"].state.text().startswith("Applies here")
    state.selection.switch("ditreducio", True)
    assert cards["error_curve"].state.text().startswith("Not with DiTReducio")
    assert "do without one" in cards["error_curve"].state.toolTip()
    state.selection.set_option("guidance", 0.0)
    assert "Guidance is off" in cards["guidance_interval"].state.text()
    for card in cards.values():
        assert card.benefit.isVisibleTo(card) and card.state.text() in card.accessibleDescription()


def test_a_measured_gain_is_said_with_what_it_was_measured_with(panel: SetupPanel, presenter: Presenter) -> None:
    load(presenter, "f5-mini", precisions=("float32", "bfloat16"))
    state, card = presenter.state, panel.techniques.groups["steps"]
    state.selection.switch("ditreducio", False)
    plain = state.selection.baseline_setting
    state.selection.switch("steps", True)
    takes: list[TakeSummary] = [take(state.selection.setting, 0.5, 1), take(plain, 2.0)]
    state.gains.set_takes(takes)
    assert card.state.text() == "Applies here · 4.00× as fast (7 steps)"
    said = "4.00× as fast with 7 steps: 1 pair of takes of the same text, on this machine, 2026-11-21."
    assert card.state.toolTip().endswith(said)
    state.selection.set_knob("steps", "steps", 8)
    assert "(7 steps)" in card.state.text(), "it says what was measured, not what is selected"
    state.gains.set_takes([take(state.selection.setting, 4.0, 2), *takes])
    assert "2.00× slower (8 steps)" in card.state.text()
    state.gains.set_takes([])
    assert card.state.text().endswith(NOT_MEASURED)


def test_an_unticked_card_stays_until_another_technique_is_added(panel: SetupPanel, presenter: Presenter) -> None:
    """Nothing moves under the pointer, and what is not in use does not pile up."""
    assert shown(panel) == ["ditreducio"], "as it is at first"
    panel.techniques.groups["ditreducio"].setChecked(False)
    assert shown(panel) == ["ditreducio"] and not presenter.state.selection.is_used("ditreducio")
    presenter.state.selection.switch("multistep", True)
    presenter.state.selection.switch("steps", True)
    assert shown(panel) == ["steps", "multistep"], "in their own order"
    panel.techniques.groups["multistep"].setChecked(False)
    load(presenter, "f5-mini")
    assert shown(panel) == ["steps"]


def test_a_click_on_the_head_of_a_card_uses_it(panel: SetupPanel, presenter: Presenter, qtbot: QtBot) -> None:
    card = panel.techniques.groups["steps"]
    panel.grab()
    head = card.benefit.mapTo(card, QPoint(20, 5))
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton, pos=head)
    assert presenter.state.selection.is_used("steps") and card.controls.isVisibleTo(panel)
    panel.grab()
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton, pos=card.meaning.mapTo(card, QPoint(20, 5)))
    assert presenter.state.selection.is_used("steps"), "only the head does"
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton, pos=head)
    assert not presenter.state.selection.is_used("steps")


@pytest.mark.parametrize(
    "model", workload([one.id for one in catalogue.models() if one.bundled], ["f5-mini", "lm-mini"])
)
def test_cards_fit_and_no_raw_key_is_shown(
    panel: SetupPanel, presenter: Presenter, model: str, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: numbers.use_sign("."))
    numbers.use_sign(",")
    load(presenter, model)
    for one in presenter.state.selection.techniques:
        card = panel.techniques.groups[one.name]
        said = f"{card.accessibleDescription()} {card.state.toolTip()}"
        assert not WITH_POINT.findall(NAMES.sub("", said)), said
    for one in presenter.state.selection.techniques:
        presenter.state.selection.switch(one.name, True)
    panel.setStyleSheet(style_sheet(LIGHT))  # With the margins that it has in the window.
    assert panel.minimumSizeHint().width() <= 360
    keys = {knob.name for knob in presenter.state.selection.entry.options}
    keys |= {knob.name for one in presenter.state.selection.techniques for knob in one.knobs}
    raw = {key for key in keys if "_" in key}
    for widget in panel.findChildren(QWidget):
        said = f"{widget.toolTip()} {widget.accessibleName()} {widget.accessibleDescription()}"
        said += widget.text() if isinstance(widget, QLabel) else ""
        assert not [key for key in raw if key in said], said


def test_every_choice_has_words() -> None:
    knobs = [knob for entry in catalogue.models() for knob in entry.options]
    knobs += [knob for one in techniques() for knob in one.knobs]
    for one in techniques():
        assert one.experimental == one.title.endswith("(experiment)"), one.name
    for knob in knobs:
        assert "_" not in knob.title
        if isinstance(knob, Choice):
            assert not [one for one in knob.titles or knob.values if "_" in one], knob.name


def test_the_effective_times_are_drawn_above_those_of_the_baseline(qtbot: QtBot) -> None:
    grid = on_screen(StepGrid(LIGHT), qtbot)
    grid.show_options({"steps": 7, "spacing": "epss", "sway": 0.0}, {"steps": 32, "spacing": "epss", "sway": 0.0})
    assert grid.times == pytest.approx([point / 32 for point in EPSS[7]])
    assert grid.others == pytest.approx([point / 32 for point in range(33)])
    grid.resize(320, grid.sizeHint().height())
    drawn = grid.grab().toImage()
    ink = [x for x in range(drawn.width()) if drawn.pixelColor(x, int(drawn.height() * 0.3)).name() == LIGHT.accent]
    starts = [x for x in ink if x - 1 not in ink]
    scale = drawn.width() / grid.width()
    assert starts == pytest.approx([time * (grid.width() - 2) * scale for time in grid.times], abs=2)
    assert "7 steps, EPSS" in grid.accessibleName() and "baseline's: 32 steps" in grid.accessibleName()
