"""The front of a speech language model, whose takes differ in timing: played at the same word, its tokens in sight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.models import load_model
from paretone.studies.definition import parse
from paretone.studies.running import LocalExecutor, run
from paretone.studies.store import Store
from paretone_app.audio.player import Mode
from paretone_app.audio.sound import same_place
from paretone_app.features.tradeoff.scene import Filter, PlotOptions
from paretone_app.results.points import Scores
from paretone_app.results.study import read_study
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.side_panel import CHOSEN
from tests.app.conftest import PATIENCE_MILLISECONDS, close
from tests.app.features.tradeoff.using import choose_look
from tests.engine.studies.small import Follower
from tests.sound import NullSink, null_sink  # noqa: F401


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LM mini with and without a draft that may err, whose takes are different readings."""
    folder = tmp_path_factory.mktemp("study") / "language.study"
    settings = [{"name": "drafted", "techniques": {"speculative": {"tolerance": 0.4}}}]
    chosen = parse({"title": "Language", "model": "lm-mini", "sentences": ["The kettle sang."], "setting": settings})
    with Store(folder) as store:
        store.begin(chosen)
        run(chosen, store, LocalExecutor(load_model), Follower())
    return folder


def test_a_study_keeps_how_tokens_came_about(results: Path) -> None:
    read = read_study(results, results.with_suffix(".toml"), scores=Scores())
    traces = {point.techniques: read.load(point.sounds[0].take).trace.decoding for point in read.parts.points}
    plain, drafted = traces[()], traces[("speculative",)]
    assert plain is not None and drafted is not None
    assert not any(cycle.drafted for cycle in plain.cycles) and any(cycle.drafted for cycle in drafted.cycles)


def test_a_study_of_an_earlier_edition_opens_without(results: Path, tmp_path: Path) -> None:
    with Store(results, read_only=True) as store:
        (take, *_) = (one.take for one in store.takes())
        assert store.decoding(take) is not None and store.decoding("another") is None
        store._version = 1
        assert store.decoding(take) is None


@pytest.mark.slow
def test_the_front_goes_on_at_the_same_word_with_its_tokens(
    null_sink: NullSink,  # noqa: F811
    make_window: Callable[..., MainWindow],
    results: Path,
    qtbot: QtBot,
) -> None:
    window = make_window()
    window.show()
    window.activateWindow()
    qtbot.waitUntil(
        lambda: window.is_built and window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE_MILLISECONDS
    )
    window.workspaces.go_to("tradeoff")
    window.features["tradeoff"].open_study(results)
    panel, player, deck = window.panels["tradeoff"], window.features["player"].player, window.features["player"].deck
    qtbot.waitUntil(lambda: panel.pool.own.sum() == 2 and player.usable, timeout=PATIENCE_MILLISECONDS)
    panel.set_filter(Filter(source="Language"))
    choose_look(panel, PlotOptions(x="real_time_factor", y="log_mel_distance", dominated=True))
    # Which of the two is on the front is the machine's affair.
    front = sorted(panel.scene.points, key=lambda one: one.techniques)
    along = window.features["tradeoff"].along
    along.row.begin(front, front[0], front[0].sounds[0].spoken)
    qtbot.waitUntil(lambda: len(deck.row) == 2, timeout=PATIENCE_MILLISECONDS)
    assert player.comparison.mode is Mode.RESTART
    qtbot.waitUntil(lambda: player.position > 0.5, timeout=PATIENCE_MILLISECONDS)
    player.pause()
    deck.seek(0.6)
    qtbot.waitUntil(lambda: not player.busy and abs(player.position - 0.6) < 0.01, timeout=PATIENCE_MILLISECONDS)
    panel.plot._go_to(panel.scene.index[front[1].key])
    assert deck.sound is deck.row[1]
    expected = same_place(deck.row[0].frames, deck.row[1].frames, 0.6)
    qtbot.waitUntil(lambda: abs(player.position - expected) < 0.02, timeout=PATIENCE_MILLISECONDS)
    decoding = window.panels["decoding"]
    compared = window.state.comparison
    qtbot.waitUntil(
        lambda: compared.chosen is not None and compared.chosen.id == deck.sound.key, timeout=PATIENCE_MILLISECONDS
    )
    assert decoding.side == CHOSEN and decoding.headline.text().startswith("Chosen point, ")
    decoding.side_buttons.chosen.emit("A")
    assert decoding.side == CHOSEN, "there is no A to show"
    panel.plot._go_to(None)
    qtbot.waitUntil(lambda: compared.chosen is None, timeout=PATIENCE_MILLISECONDS)
    assert decoding.side != CHOSEN
    close(window, qtbot)
