"""The log keeps everything and shows what is wanted."""

from pytestqt.qtbot import QtBot

from paretone_app.features.log import LogPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.notices import Level


def test_details_are_kept_but_shown_on_demand(qtbot: QtBot, qapp) -> None:
    log = LogPanel(LIGHT)
    qtbot.addWidget(log)
    log.add(Level.DETAIL, "a detail")
    log.add(Level.INFO, "a fact")
    log.add(Level.ERROR, "a failure\nwith a second line")
    assert "a detail" not in log.text.toPlainText()
    assert "a failure" in log.text.toPlainText()
    log.level.setCurrentIndex(Level.DETAIL)
    assert "a detail" in log.text.toPlainText()
    log.level.setCurrentIndex(Level.ERROR)
    assert "a fact" not in log.text.toPlainText()
    log.copy()
    copied = qapp.clipboard().text()
    assert [word in copied for word in ("a detail", "a fact", "second line")] == [True] * 3
    log.clear()
    assert log.plain_text() == ""
