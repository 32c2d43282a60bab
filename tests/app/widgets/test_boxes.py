"""Boxes and sliders change only on purpose."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSpinBox,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from paretone.setting.knobs import Choice, Effect, Number, Switch, defaults
from paretone.techniques import spade, techniques
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.theme import style_sheet
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, Slider, SpinBox
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.screen_readers import CHART
from tests.app.conftest import in_front, on_screen, typed

APP = Path(__file__).parents[3] / "app" / "paretone_app"
NO_KEYS = Qt.KeyboardModifier.NoModifier


def turn_wheel(widget: QWidget, keys: Qt.KeyboardModifier = NO_KEYS, away: bool = False) -> None:
    """Turn the wheel by a notch over ``widget``, as the window system reports it: towards the user, or ``away``."""
    window = widget.window()
    place = widget.mapTo(window, widget.rect().center())
    QTest.wheelEvent(window.windowHandle(), QPointF(place), QPoint(0, 120 if away else -120), stateKey=keys)


@pytest.fixture
def boxes(qtbot: QtBot) -> dict[str, QWidget]:
    """One of each kind, in a panel that scrolls, with the focus in none."""
    combo = ComboBox()
    combo.addItems(["one", "two", "three"])
    combo.setCurrentIndex(1)
    made = {
        "combo": combo,
        "spin": SpinBox(maximum=64, value=10),
        "double": DoubleSpinBox(maximum=1.0, decimals=3, singleStep=0.01, value=0.1),
        "slider": Slider(Qt.Orientation.Horizontal, maximum=10, value=5),
    }
    content, other = QWidget(), QWidget(focusPolicy=Qt.FocusPolicy.StrongFocus)
    layout = QVBoxLayout(content)
    for one in (other, *made.values(), QWidget(minimumHeight=1000)):
        layout.addWidget(one)
    area = QScrollArea()
    area.setWidget(content)
    content.area = in_front(area, qtbot, 200, 300)  # Nothing else keeps it.
    other.setFocus()
    return made


def test_what_has_no_room_in_a_choice_ends_with_an_ellipsis(boxes: dict[str, QWidget]) -> None:
    combo = boxes["combo"]
    combo.addItem("a choice of many words, for which there is no room")
    combo.resize(120, combo.height())
    assert combo.shown == "two"
    for sheet in ("", style_sheet(LIGHT)):
        combo.setStyleSheet(sheet)
        for words in ("On this machine", "All models", "Attention and feed-forward (paper)"):
            own = ComboBox()
            own.setStyleSheet(sheet)
            own.addItem(words)
            own.resize(own.sizeHint())
            assert own.shown == words, "what has the room that it asks for is whole"
    combo.setCurrentIndex(3)
    assert combo.shown.startswith("a choice") and combo.shown.endswith("…")
    assert combo.currentText().endswith("no room")


def test_keys_with_control_are_the_windows(boxes: dict[str, QWidget], qtbot: QtBot) -> None:
    content = boxes["combo"].parentWidget()
    passed: list[QWidget] = []
    content.keyPressEvent = lambda event: passed.append(one) if event.key() == Qt.Key.Key_T else None
    for one in boxes.values():
        one.setFocus()
        qtbot.keyClick(one, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    assert passed == [*boxes.values()], "a window says why it cannot do what they stand for"
    qtbot.keyClick(boxes["combo"], Qt.Key.Key_T)
    assert boxes["combo"].currentText() == "three", "a letter still chooses"


def values(boxes: dict[str, QWidget]) -> list[float]:
    return [boxes["combo"].currentIndex(), boxes["spin"].value(), boxes["double"].value(), boxes["slider"].value()]


def test_the_wheel_over_a_box_scrolls_the_panel_wherever_the_focus_is(boxes: dict[str, QWidget]) -> None:
    before, area = values(boxes), boxes["combo"].parentWidget().area
    for focused in (False, True):
        for one in boxes.values():
            if focused:
                one.setFocus()
            area.verticalScrollBar().setValue(0)
            turn_wheel(one)
            assert one.hasFocus() is focused, "the wheel moves no focus"
            assert area.verticalScrollBar().value() > 0, type(one).__name__
    assert values(boxes) == before


def test_the_wheel_with_control_changes_the_box_under_it_by_one_notch(boxes: dict[str, QWidget]) -> None:
    area = boxes["combo"].parentWidget().area
    changes = {"combo": 1, "spin": -1, "double": -0.01, "slider": -QApplication.wheelScrollLines()}
    for index, (name, one) in enumerate(boxes.items()):
        area.verticalScrollBar().setValue(0)
        expected = values(boxes)
        expected[index] += changes[name]
        turn_wheel(one, Qt.KeyboardModifier.ControlModifier)
        assert values(boxes) == pytest.approx(expected), name
        assert area.verticalScrollBar().value() == 0, "it does one thing at a time"
    boxes["combo"].setCurrentIndex(2)
    turn_wheel(boxes["combo"], Qt.KeyboardModifier.ControlModifier)
    assert area.verticalScrollBar().value() == 0, "nor at its last value"


@pytest.mark.parametrize("text", ["0,15", ".15"])
@pytest.mark.parametrize("language", ["de_DE", "en_US"])
def test_a_comma_is_a_decimal_point(text: str, language: str, qtbot: QtBot) -> None:
    there = QLocale()
    QLocale.setDefault(QLocale(language))
    try:
        box = DoubleSpinBox(maximum=1.0, decimals=3, value=0.1, suffix=" s")
    finally:
        QLocale.setDefault(there)
    qtbot.addWidget(box)
    assert box.text() == "0.100 s"
    typed(box, text, qtbot)
    assert (box.value(), box.text()) == (0.15, "0.150 s")


def test_a_number_that_cannot_be_taken_is_refused_with_a_sentence(qtbot: QtBot) -> None:
    box = on_screen(DoubleSpinBox(maximum=1.0, decimals=3, value=0.1), qtbot)
    typed(box, "15", qtbot)
    assert (box.value(), box.text()) == (0.1, "0.100")
    assert QToolTip.text() == "15 is not between 0 and 1; the value stays 0.100."
    box.selectAll()
    qtbot.keyClicks(box, "0,1x2,5")
    assert box.text() == "0,125", "letters and a second comma are not typed at all"
    typed(box, "-", qtbot)
    assert box.value() == 0.1
    assert QToolTip.text() == "“-” is no number; the value stays 0.100."
    whole = on_screen(SpinBox(minimum=4, maximum=64, value=32, suffix=" steps"), qtbot)
    typed(whole, "2", qtbot)
    assert whole.value() == 32
    assert QToolTip.text() == "2 is not between 4 and 64; the value stays 32 steps."


def test_the_window_has_no_other_boxes() -> None:
    kinds = "(?:Font)?ComboBox|(?:Double)?SpinBox|Slider|Dial|(?:Date|Time|DateTime)Edit"
    made = re.compile(rf"\bQ(?:{kinds})\(|^class \w+\(.*\bQ(?:Abstract)?(?:{kinds})\b")
    found = [
        f"{path.relative_to(APP).as_posix()}: {line.strip()}"
        for path in APP.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if made.search(line) and not line.lstrip().startswith("case ") and path != APP / "widgets" / "boxes.py"
    ]
    # It shows a waveform, and the wheel never moves it.
    assert found == ["features/player/panel.py: class WaveStrip(QSlider):"]


# --- Controls built from declarations ---------------------------------------------------------------------------------
def reset_of(controls: KnobControls, name: str) -> QToolButton:
    """The button before the control of the knob ``name``."""
    places = iter(controls.reachable)
    found = next(one for one, after in zip(places, places, strict=True) if after is controls.editor(name))
    assert isinstance(found, QToolButton)
    return found


AFTER = Effect.AFTER_CALIBRATION
KNOBS = (
    Number("steps", "Steps", "Number of thresholds.", 32, minimum=1, maximum=64, whole=True),
    Number("threshold", "Threshold", "How far.", 0.1, "δ", "mel", AFTER, minimum=0.0, maximum=2.0, step=0.01),
    Switch("on", "On", "Whether.", True),
    Choice("solver", "Solver", "Which.", "euler", values=("euler", "midpoint"), titles=("Euler", "Midpoint")),
)


@pytest.fixture
def controls(qtbot: QtBot) -> KnobControls:
    made = KnobControls("Test")
    made.set_knobs(KNOBS, defaults(KNOBS))
    return on_screen(made, qtbot)


def told(controls: KnobControls, act: Callable[[], None], qtbot: QtBot) -> list[object]:
    with qtbot.waitSignal(controls.changed) as blocker:
        act()
    return blocker.args


def test_each_kind_has_its_editor_range_and_name(controls: KnobControls) -> None:
    kinds = {"steps": QSpinBox, "threshold": QDoubleSpinBox, "on": QCheckBox, "solver": QComboBox}
    for name, kind in kinds.items():
        assert isinstance(controls.editor(name), kind)
    spin = controls.editor("threshold")
    assert (spin.minimum(), spin.maximum(), spin.singleStep()) == (0.0, 2.0, 0.01)
    assert spin.accessibleName() == "Test: Threshold δ (mel)"
    assert "after the next calibration" in spin.toolTip()


def test_a_minimum_that_is_no_amount_is_shown_in_words(controls: KnobControls, qtbot: QtBot) -> None:
    limits = (
        Number("most", "Most", "How many; 0: all.", 0, minimum=0, maximum=9, unit="frames", whole=True, lowest="all"),
        Number("scale", "Scale", "How much; 0: usual.", 0.0, minimum=0.0, maximum=2.0, step=0.05, lowest="usual"),
    )
    controls.set_knobs(limits, defaults(limits))
    most, scale = controls.editor("most"), controls.editor("scale")
    assert (most.text(), scale.text()) == ("all", "usual")
    assert reset_of(controls, "most").toolTip() == "Reset to all"
    for editor, wanted, shown in ((most, 1, "1 frames"), (scale, 0.05, "0.050")):
        assert told(controls, partial(qtbot.keyClick, editor, Qt.Key.Key_Up), qtbot)[1] == wanted
        assert editor.text() == shown
        assert told(controls, partial(qtbot.keyClick, editor, Qt.Key.Key_Down), qtbot)[1] == 0


def test_keys_change_values(controls: KnobControls, qtbot: QtBot) -> None:
    for name, key, value in (("steps", Qt.Key.Key_Up, 33), ("solver", Qt.Key.Key_Down, "midpoint")):
        assert told(controls, partial(qtbot.keyClick, controls.editor(name), key), qtbot) == [name, value]


def test_reset_restores_the_owners_default(controls: KnobControls, qtbot: QtBot) -> None:
    controls.set_knobs(KNOBS, {**defaults(KNOBS), "steps": 20}, {"steps": 16})
    reset = reset_of(controls, "steps")
    assert reset.isEnabled()
    assert told(controls, reset.click, qtbot) == ["steps", 16]
    with qtbot.assertNotEmitted(controls.changed):
        controls.set_knobs(KNOBS, {**defaults(KNOBS), "steps": 16}, {"steps": 16})
    assert not reset_of(controls, "steps").isEnabled()


def test_every_declared_technique_can_be_shown_and_layers_are_typed_and_taken_over_whole(
    controls: KnobControls, qtbot: QtBot
) -> None:
    for one in techniques():
        controls.set_knobs(one.knobs, defaults(one.knobs))
        assert [knob.name for knob in controls.knobs] == [knob.name for knob in one.knobs]
    knob = next(one for one in spade.TECHNIQUE.knobs if one.name == "layers")
    controls.set_knobs((knob,), {"layers": "0,1"})
    editor = controls.editor("layers")
    assert isinstance(editor, QLineEdit) and editor.text() == "0,1"
    editor.selectAll()
    qtbot.keyClicks(editor, "0,5 ")
    assert told(controls, partial(qtbot.keyClick, editor, Qt.Key.Key_Return), qtbot) == ["layers", "0,5"]
    assert reset_of(controls, "layers").toolTip() == "Reset to nothing"


def test_rows_are_built_once_for_each_set_of_knobs(controls: KnobControls, qtbot: QtBot) -> None:
    editor = controls.editor("steps")
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    controls.set_knobs(KNOBS[2:], {"on": False, "solver": "euler"})
    assert [knob.name for knob in controls.knobs] == ["on", "solver"]
    assert not editor.isVisible() and controls.editor("on").isVisible()
    controls.set_knobs(KNOBS, {**defaults(KNOBS), "steps": 7})
    assert controls.editor("steps") is editor and editor.isVisible() and editor.value() == 7
    assert told(controls, reset_of(controls, "steps").click, qtbot) == ["steps", 32]


# --- What screen readers are told -------------------------------------------------------------------------------------
def test_a_label_with_a_name_says_its_text_too(qtbot: QtBot) -> None:
    status = build.label("Opening…", name="Status")
    assert (status.accessibleName(), status.accessibleDescription()) == ("Status", "Opening…")
    status.setText("Ready")
    assert status.accessibleDescription() == "Ready"
    rich = build.label("<b>Take A</b> baseline", name="What is heard", rich=True)
    assert rich.accessibleDescription() == "Take A baseline"
    rich.clear()
    assert rich.accessibleDescription() == ""


def test_a_choice_is_labelled_by_what_it_chooses(qtbot: QtBot) -> None:
    panel = QWidget()
    choice = build.combo("Solver", [("Euler", 0), ("Midpoint", 1)])
    QVBoxLayout(panel).addWidget(choice)
    on_screen(panel, qtbot)
    (label,) = panel.findChildren(QLabel)
    assert label.buddy() is choice and label.text() == "Solver" and not label.isVisible()


def test_a_painted_widget_has_its_role(qtbot: QtBot) -> None:
    class Bars(QWidget):
        screen_role = CHART

    bars = Bars()
    assert QAccessible.queryAccessibleInterface(bars).role() == CHART
