"""The log keeps everything and shows what is wanted."""

from pytestqt.qtbot import QtBot

from paretone_app.features.log import LogPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.notices import Level


def test_details_are_kept_but_shown_on_demand(qtbot: QtBot, qapp) -> None:
    log = LogPanel(LIGHT)
    qtbot.addWidget(log)
    assert log.level.currentData() is Level.INFO
    entries = {Level.DETAIL: "a detail", Level.INFO: "a fact", Level.ERROR: "a failure\nwith a second line"}
    for level, text in entries.items():
        log.add(level, text)
    for lowest in (Level.INFO, Level.DETAIL, Level.ERROR):
        log.level.setCurrentIndex(lowest)
        shown = log.text.toPlainText()
        assert [text in shown for text in entries.values()] == [level >= lowest for level in entries]
    log.copy()
    copied = qapp.clipboard().text()
    assert [word in copied for word in ("a detail", "a fact", "second line")] == [True] * 3
    log.clear()
    assert log.plain_text() == ""
