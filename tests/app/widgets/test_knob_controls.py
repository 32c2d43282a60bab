"""Controls are built from declarations."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox, QToolButton
from pytestqt.qtbot import QtBot

from paretone.setting.knobs import Choice, Effect, Number, Switch, defaults
from paretone.techniques import spade, techniques
from paretone_app.widgets.knob_controls import KnobControls


def reset_of(controls: KnobControls, name: str) -> QToolButton:
    """The button after the control of the knob ``name``."""
    places = iter(controls.reachable)
    found = next(after for one, after in zip(places, places, strict=True) if one is controls.editor(name))
    assert isinstance(found, QToolButton)
    return found


KNOBS = (
    Number("steps", "Steps", "Number of thresholds.", 32, minimum=1, maximum=64, whole=True),
    Number(
        "threshold",
        "Threshold",
        "How far.",
        0.1,
        "δ",
        "mel",
        Effect.AFTER_CALIBRATION,
        minimum=0.0,
        maximum=2.0,
        step=0.01,
    ),
    Switch("on", "On", "Whether.", True),
    Choice("solver", "Solver", "Which.", "euler", values=("euler", "midpoint"), titles=("Euler", "Midpoint")),
)


@pytest.fixture
def controls(qtbot: QtBot) -> KnobControls:
    made = KnobControls("Test")
    qtbot.addWidget(made)
    made.set_knobs(KNOBS, defaults(KNOBS))
    made.show()
    return made


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
        with qtbot.waitSignal(controls.changed) as blocker:
            qtbot.keyClick(editor, Qt.Key.Key_Up)
        assert blocker.args[1] == wanted and editor.text() == shown
        with qtbot.waitSignal(controls.changed) as blocker:
            qtbot.keyClick(editor, Qt.Key.Key_Down)
        assert blocker.args[1] == 0


def test_keys_change_values(controls: KnobControls, qtbot: QtBot) -> None:
    with qtbot.waitSignal(controls.changed) as blocker:
        qtbot.keyClick(controls.editor("steps"), Qt.Key.Key_Up)
    assert blocker.args == ["steps", 33]
    with qtbot.waitSignal(controls.changed) as blocker:
        qtbot.keyClick(controls.editor("solver"), Qt.Key.Key_Down)
    assert blocker.args == ["solver", "midpoint"]


def test_reset_restores_the_owners_default(controls: KnobControls, qtbot: QtBot) -> None:
    controls.set_knobs(KNOBS, {**defaults(KNOBS), "steps": 20}, {"steps": 16})
    reset = reset_of(controls, "steps")
    assert reset.isEnabled()
    with qtbot.waitSignal(controls.changed) as blocker:
        reset.click()
    assert blocker.args == ["steps", 16]
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
    with qtbot.waitSignal(controls.changed) as changed:
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert changed.args == ["layers", "0,5"]
    assert reset_of(controls, "layers").toolTip() == "Reset to nothing"


def test_rows_are_built_once_for_each_set_of_knobs(controls: KnobControls, qtbot: QtBot) -> None:
    editor = controls.editor("steps")
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    controls.set_knobs(KNOBS[2:], {"on": False, "solver": "euler"})
    assert [knob.name for knob in controls.knobs] == ["on", "solver"]
    assert not editor.isVisible()
    assert controls.editor("on").isVisible()
    controls.set_knobs(KNOBS, {**defaults(KNOBS), "steps": 7})
    assert controls.editor("steps") is editor
    assert editor.isVisible()
    assert editor.value() == 7
    with qtbot.waitSignal(controls.changed) as blocker:
        reset_of(controls, "steps").click()
    assert blocker.args == ["steps", 32]
