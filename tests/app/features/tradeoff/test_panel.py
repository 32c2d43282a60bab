"""The trade-off panel next to its plot: figures of points, axes, filters, and what comes back after a restart."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.studies.gains import published
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.scene import BASELINE, Filter, PlotOptions
from paretone_app.features.tradeoff.words import Reference
from paretone_app.results.points import published_points
from tests.app.features.tradeoff.test_scene import PLAIN, point
from tests.app.features.tradeoff.using import POINTS, SOUNDS, choose_look, click, current, panel_of
from tests.tools.many_points import many


# --- Next to the plot ------------------------------------------------------------------------------------------------
def test_the_chosen_sentence_is_kept_from_point_to_point(panel: TradeoffPanel) -> None:
    panel.choose("a")
    assert panel.details.sound == SOUNDS[0]
    panel.details.sentence.setCurrentIndex(1)
    panel.details.sentence.activated.emit(1)
    assert panel.details.sound == SOUNDS[1]
    panel.choose("b")
    assert panel.details.sound == SOUNDS[0] and panel.details.sentence.isHidden(), "it has no other"
    panel.choose("c")
    assert panel.details.sound == SOUNDS[1]


def test_figures_come_first_and_differences_to_the_baseline_or_to_a_are_folded(panel: TradeoffPanel) -> None:
    details = panel.details
    panel.choose("a")
    assert details._text.text().startswith("<div style='margin-bottom:5px'><table")
    assert "<b>1</b>" in details.text and "0.9–1.1" in details.text and "n = 4" in details.text
    assert details._fold.text() == "Differences from its baseline" and details._difference.isHidden()
    details._fold.click()
    assert not details._difference.isHidden() and "DiTReducio: off → δ = 0.1" in details._difference.text()
    panel.choose("b")
    assert not details._difference.isHidden(), "it stays unfolded from point to point"
    panel.set_a(Reference("A", PLAIN, take="c"))
    assert "Against A:" in details.text
    panel.choose("c")
    assert "Against A" not in details.text, "A itself does not differ from A"
    panel.set_a(Reference("A", replace(PLAIN, model="lm-mini"), take="c"))
    panel.choose("a")
    assert details._fold.text() == "Differences from its baseline", "A is of another model"


# --- Axes, filters, what is shown ------------------------------------------------------------------------------------
def test_axes_are_chosen_with_their_direction_and_told_whole(panel: TradeoffPanel) -> None:
    across, up, whole = panel.options_line.x_choice, panel.options_line.y_choice, "Log-mel distance (nat. log) ↓"
    assert [across.itemText(row) for row in range(across.count())] == ["RTF ↓", whole]
    panel.resize(1200, 640)
    assert up.shown == whole
    panel.resize(panel.minimumSizeHint())
    assert up.shown.endswith("…") and whole.startswith(up.shown[:-1]) and up.toolTip().startswith(f"{whole}\n")
    across.setCurrentIndex(1)
    across.activated.emit(1)
    assert panel.options.x == "log_mel_distance" and "Mean absolute" in across.toolTip()
    panel.show_points(POINTS[:2])
    assert panel.options.x == "log_mel_distance", "what the user chose stays"


def test_it_opens_with_the_points_of_the_loaded_model(qtbot: QtBot) -> None:
    panel, other = panel_of(), point("e", 1.0, 1.0, model="LM mini")
    qtbot.addWidget(panel)
    choose_look(panel, PlotOptions())
    panel.suit("LM mini")
    panel.show_points((*POINTS, other))
    assert [one.key for one in panel.scene.points] == ["e"]
    panel.suit("F5 mini")
    assert panel.scene.own == 4
    panel.set_filter(Filter())
    assert panel.scene.own == 5, "the user's choice stays"
    panel.suit("LM mini")
    panel.show_points((*POINTS, other, point("f", 2.0, 2.0, source="T")))
    assert panel.scene.own == 6, "what was just opened is shown"


def test_filters_and_techniques(panel: TradeoffPanel) -> None:
    legend = panel.legend.offered
    assert list(legend) == [BASELINE, "ditreducio", "steps"]
    assert legend["steps"].text() == "Step pruning 2" and legend["steps"].accessibleName() == "Step pruning: 2 points"
    QTest.mouseClick(legend["steps"], Qt.MouseButton.LeftButton)
    assert {one.key for one in panel.scene.points} == {"a", "c"} and panel.filter_line.clear_button.isEnabled()
    QTest.mouseClick(panel.filter_line.clear_button, Qt.MouseButton.LeftButton)
    assert panel.scene.own == 4 and legend["steps"].isChecked()
    panel.legend.show_only("ditreducio")
    assert {one.key for one in panel.scene.points} == {"a"}
    panel.clear_filter()
    QTest.keyClicks(panel.filter_line.search, "bella")
    assert {one.key for one in panel.scene.points} == {"a", "c"}
    QTest.keyClicks(panel.filter_line.search, " nothing like it")
    assert panel.scene.own == 0 and panel.foot.remarks == "The filter hides all points; press Clear to show them."
    panel.clear_filter()
    voice = panel.filter_line.combos["voice"]
    voice.setCurrentIndex(voice.findData("anna"))
    voice.activated.emit(voice.currentIndex())
    assert {one.key for one in panel.scene.points} == {"a", "b", "c"}
    panel.show_points(POINTS[3:])
    assert panel.filter.voice == "", "nobody speaks in that voice any more"


def test_what_is_chosen_stays_while_it_is_shown(panel: TradeoffPanel) -> None:
    panel.choose("d")
    panel.options_line.boxes["intervals"].click()
    assert current(panel) == "d" and not panel.options.intervals
    panel.options_line.boxes["dominated"].click()
    assert current(panel) == "" and "1 dominated not shown" in panel.foot.counts


def test_published_results_are_switchable(panel: TradeoffPanel) -> None:
    panel.options_line.boxes["published"].click()
    assert panel.foot.remarks.startswith("No published results here: no paper reports Log-mel distance")
    own = point("e", 1.0, 1.0)
    figures = {**own.figures, "ops_ratio": own.figures["real_time_factor"]}
    panel.show_points([point("e", 1.0, 1.0, figures=figures, baseline=figures)])
    choose_look(panel, PlotOptions(x="real_time_factor", y="ops_ratio", ratios=True, published=True))
    ghosts = [one for one in panel.scene.points if one.published]
    assert (
        ghosts and panel.options_line.boxes["ratios"].isChecked() and panel.options_line.boxes["published"].isChecked()
    )
    click(panel, ghosts[3].key)
    assert "NVIDIA RTX 3090" in panel.details.text
    assert panel.details.keep_button.isHidden()


def test_a_study_brings_its_speed_up_before_the_user_has_chosen(qtbot: QtBot) -> None:
    made = panel_of()
    qtbot.addWidget(made)
    assert made.options.x == "real_time_factor" and made.invitation.startswith("Reading")
    made.show_points(())
    assert "run a study" in made.invitation
    made.show_points(many(3))
    assert made.options.x == made.options_line.x_choice.currentData() == "speed_up" and made.invitation == ""


# --- Between starts --------------------------------------------------------------------------------------------------
def test_what_is_shown_comes_back_with_the_points(panel: TradeoffPanel, qtbot: QtBot) -> None:
    choose_look(
        panel, PlotOptions(x="log_mel_distance", y="real_time_factor", published=True, dominated=False, log_x=True)
    )
    panel.set_filter(Filter(source="S", words="a", hidden=frozenset({"steps"})))
    kept = panel.remembered
    made = panel_of(published_points(published()))
    qtbot.addWidget(made)
    made.recall(kept)
    assert made.remembered == kept, "before there is any point"
    made.show_points((point("t", 1.0, 1.0, source="Takes"),))
    assert made.filter.source == "" and made.remembered == kept, "the study is not there yet"
    made.show_points(POINTS)
    assert made.options == panel.options and made.filter == panel.filter
    assert not made.legend.buttons["steps"].isChecked() and made.filter_line.search.text() == "a"
    assert made.options_line.boxes["log_x"].isChecked() and made.options_line.boxes["published"].isChecked()
    made.show_points(many(3))
    assert made.options.x == "log_mel_distance", "the axes are the user's"
    made.clear_filter()
    assert made.filter == Filter()
