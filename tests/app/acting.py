"""Actions that do nothing, for panels on their own, keys that people press there, and what charts draw."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QGraphicsItem, QWidget

from paretone_app.plotting.chart import Chart
from paretone_app.widgets.action import Action


class NamedActs(dict[str, Action]):
    """An action for each name that is asked for."""

    def __missing__(self, name: str) -> Action:
        return self.setdefault(name, Action(name))


def acts(number: int) -> list[Action]:
    return [Action(f"Action {index + 1}") for index in range(number)]


def press(widget: QWidget, *keys: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    for key in keys:
        QTest.keyClick(widget, key, modifier)


def items(chart: Chart, kind: type[QGraphicsItem]) -> list:
    """Visible items of ``kind`` that ``chart`` draws."""
    return [one for one in chart.view.scene().items() if isinstance(one, kind) and one.isVisible()]
