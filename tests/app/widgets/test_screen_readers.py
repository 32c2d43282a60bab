"""What screen readers are told beyond what Qt tells them."""

from __future__ import annotations

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from paretone_app.widgets import build
from paretone_app.widgets.screen_readers import CHART, tell_roles


def test_a_label_with_a_name_says_its_text_too(qtbot: QtBot) -> None:
    status = build.label("Opening…", name="Status")
    qtbot.addWidget(status)
    assert (status.accessibleName(), status.accessibleDescription()) == ("Status", "Opening…")
    status.setText("Ready")
    assert status.accessibleDescription() == "Ready"
    rich = build.label("<b>Take A</b> baseline", name="What is heard", rich=True)
    qtbot.addWidget(rich)
    assert rich.accessibleDescription() == "Take A baseline"
    rich.clear()
    assert rich.accessibleDescription() == ""


def test_a_choice_is_labelled_by_what_it_chooses(qtbot: QtBot) -> None:
    panel = QWidget()
    qtbot.addWidget(panel)
    choice = build.combo("Solver", [("Euler", 0), ("Midpoint", 1)])
    QVBoxLayout(panel).addWidget(choice)
    panel.show()
    label = choice._label
    assert label is not None and label.buddy() is choice and label.text() == "Solver"
    assert not label.isVisible()


def test_a_painted_widget_has_its_role(qtbot: QtBot) -> None:
    class Bars(QWidget):
        screen_role = CHART

    tell_roles()
    bars = Bars()
    qtbot.addWidget(bars)
    assert QAccessible.queryAccessibleInterface(bars).role() == CHART
