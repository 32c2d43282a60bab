"""A small speech language model in the real window on the real engine: its tokens, its layers, and hearing both."""

import json
import tomllib
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, WORD_ERROR
from paretone.session.commands import ExportWeights
from paretone.session.events import Progress
from paretone.techniques import spade, speculative
from paretone_app.audio.player import Mode
from paretone_app.features.export import WeightsDialog
from paretone_app.features.layers.study import KIND
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import SMALL, MakeWindow
from tests.app.features.other_families import PATIENCE, choose, ended, window_with
from tests.app.holding import Posts
from tests.app.sharing import borrowed  # noqa: F401
from tests.engine.speaking import TEXT, write_all
from tests.engine.studies.ear import silence

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PARTS = f"{SMALL} meters views training decoding layers lab studies tradeoff export"
LOOKED_AT = ("takes", "layers")
LOADS = "lm-mini"


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small language model, its draft, its students and the measurement of its layers."""
    return write_all(tmp_path_factory.mktemp("language") / "model")


@pytest.fixture(scope="module")
def shared_window(shared_window: MainWindow, surroundings: Path, request: pytest.FixtureRequest) -> MainWindow:
    choose(shared_window, "lm-mini", surroundings, TEXT, {"speed": 2.0}, QtBot(request))
    return shared_window


def test_tokens_of_both_takes_are_shown_and_heard_from(window: MainWindow, qtbot: QtBot) -> None:
    state, panel = window.state, window.panels["decoding"]
    assert ended(window, qtbot, state.synthesis.synthesise_baseline)[:2] == (Kind.BASELINE, Outcome.FINISHED)
    qtbot.waitUntil(lambda: state.comparison.take_a is not None, timeout=PATIENCE)
    assert panel.side == "A" and panel.values["tokens"].text() == "1.00"
    state.selection.switch(speculative.NAME, True)
    assert ended(window, qtbot, state.synthesis.synthesise_accelerated)[:2] == (Kind.ACCELERATED, Outcome.FINISHED)
    qtbot.waitUntil(lambda: panel.side == "B", timeout=PATIENCE)
    trace = state.comparison.take_b.trace.decoding
    assert panel.headline.text().startswith(f"{state.comparison.take_b.label}: {len(trace.tokens)} tokens")
    assert all("×" in panel.values[name].text() for name in ("predicted", "measured"))
    assert "%" in panel.values["prompt"].text()
    listen = window.features["player"]
    qtbot.waitUntil(lambda: len(listen.deck.loaded) == 2 and not listen.player.streaming, timeout=PATIENCE)
    assert listen.player.comparison.mode is Mode.RESTART
    assert "Timing differs between takes" in listen.player.comparison.reason
    panel.strip.move_cursor(20)
    panel.strip.activated.emit(20)
    assert listen.deck.heard == "B"
    # Where there is a device, it has gone on from there.
    began = [one.entering_position for one in listen.player.mixer.jumps] + [listen.player.mixer.state.position]
    assert trace.seconds_of[20] in [pytest.approx(one / listen.player.rate, abs=0.001) for one in began]

    rates = {name: window.panels["meters"].figures[name].name.text() for name in ("rate", "step")}
    assert rates == {"rate": "Tokens/s", "step": "Token"}


def test_layers_are_chosen_heard_and_taken_back(window: MainWindow, qtbot: QtBot) -> None:
    state, presenter = window.state, window.features["layers"]
    panel, choice = presenter.layers, presenter.choice
    assert choice.record.order == (0, 2, 1)
    choice.set_depth(2)
    assert (choice.retained, panel.depth_box.value()) == ((0, 2), 2)
    panel.toggled.emit(1)
    assert (choice.retained, choice.by_hand) == ((0, 1, 2), True)
    panel.toggled.emit(0)
    assert state.selection.knobs(spade.NAME)["layers"] == "1,2"
    window.action.undo.trigger()
    window.action.undo.trigger()
    assert (choice.retained, choice.by_hand) == ((0, 2), False)
    window.action.redo.trigger()
    panel.can["by_importance"].trigger()
    assert choice.retained == (0, 2)
    assert panel.hear[spade.RECOVERED].isEnabled(), panel.hear[spade.RECOVERED].reason
    outcome = ended(window, qtbot, panel.hear[spade.NONE].trigger)
    assert outcome[:2] == (Kind.ACCELERATED, Outcome.FINISHED), outcome[2]
    entry = state.comparison.take_b.setting.technique(spade.NAME)
    assert (entry.knobs["recovery"], entry.knobs["depth"]) == (spade.NONE, 2)
    panel.can["train"].trigger()
    training = window.panels["training"]
    assert training.plan(resume=False).knobs["layers"] == "0,2"
    training.chooser.setCurrentIndex(0)
    choice.set_depth(1)
    panel.toggled.emit(choice.retained[0])
    assert len(choice.retained) == 1 and "Keep at least one layer." in window.notices.banner.text


def test_students_and_drafts_are_exported(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    window.state.selection.set_knob(speculative.NAME, "tolerance", 0.3)
    for choice, kind in ((0, "student"), (2, "draft")):
        window.action.export_weights.trigger()
        (dialog,) = window.findChildren(WeightsDialog)
        dialog.weights.setCurrentIndex(choice)
        dialog.path.selectAll()
        QTest.keyClicks(dialog.path, str(tmp_path / kind))
        assert "will be created" in dialog.note.text()
        outcome = ended(window, qtbot, lambda at=dialog: QTest.keyClick(at.path, Qt.Key.Key_Return))
        assert outcome[:2] == (Kind.EXPORT, Outcome.FINISHED), outcome[2]
        qtbot.waitUntil(lambda: not window.findChildren(WeightsDialog), timeout=PATIENCE)
        said = window.notices.banner.text
        assert said.startswith(f"The {kind} ") and f" is in {tmp_path / kind}: model.safetensors" in said
        assert json.loads((tmp_path / kind / "config.json").read_text())["num_hidden_layers"] == 2
    assert json.loads((tmp_path / "draft" / "speculative.json").read_text())["tolerance"] == 0.3
    (tmp_path / "student" / "config.json").write_text("mine")
    given, model = ("lm-mini", "student", "", str(tmp_path / "student")), str(window.state.selection.model_folder)
    make = partial(ExportWeights, model_folder=model)
    export = partial(window.jobs.start, Kind.EXPORT, lambda job: make(job, *given))
    kind, outcome, sentence = ended(window, qtbot, export)
    assert (kind, outcome) == (Kind.EXPORT, Outcome.FAILED)
    assert "config.json exists with other content and is kept" in sentence


def test_panels_offer_what_it_has_a_sweep_is_one_press(window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    views, training = window.panels["views"], window.panels["training"]
    offered = [views.chooser.itemData(index) for index in range(views.chooser.count())]
    assert offered == ["speculation", "token-groups", "layer-importance", "depth"]
    offered = [training.chooser.itemData(index) for index in range(training.chooser.count())]
    assert offered == ["speculative", "spade"] and training.work.text().endswith("lm-mini-draft-2-0")
    shared_posts.hold_at(Progress)
    window.features["decoding"].sweep.trigger()
    assert window.panels["views"].view.name == "speculation"
    kind, outcome, _ = ended(window, qtbot, lambda: (window.action.cancel.trigger(), shared_posts.go_on()))
    assert (kind, outcome) == (Kind.VIEW, Outcome.CANCELLED)
    assert window.panels["views"].state.text().startswith("Cancelled")


def test_word_errors_are_measured_by_a_study_and_layers_at_once_and_both_are_taken_up(
    make_window: MakeWindow, parts: str, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    monkeypatch.setattr("paretone.studies.execution.reference_speech", silence)
    root = write_all(tmp_path / "model")
    with window_with("lm-mini", root, TEXT, {"speed": 2.0}, make_window, qtbot, parts) as window:
        presenter, studies = window.features["layers"], window.features["studies"]
        (earlier,) = presenter.choice.record.measures
        presenter.layers.sentences.setValue(1)
        presenter.layers.can["study"].trigger()
        maker = studies.maker
        assert maker.kind.currentText() == "Leave out each layer once"
        qtbot.waitUntil(lambda: "4 takes: 4 settings × 1 sentence" in maker.verdict.text(), timeout=PATIENCE)
        file = Path(maker.path.text())
        kind, outcome, sentence = ended(window, qtbot, maker.start_button.click)
        assert (kind, outcome) == (Kind.STUDY, Outcome.FINISHED), sentence
        given = tomllib.loads(file.read_text(encoding="utf-8"))
        assert given["leave_one_layer_out"] and (given["layers"], given["judges"]) == (3, ["words"])
        assert given["options"]["speed"] == 2.0
        measured = presenter.choice.record.measure(WORD_ERROR)
        assert measured != earlier and measured.utterances == 1
        assert [one.measure for one in presenter.layers.bars.measures] == [WORD_ERROR]
        assert window.state.selection.info.layer_order == presenter.choice.record.order
        place = tmp_path / "own" / "models" / "lm-mini" / FILE
        assert f"into {place}" in studies.studies.state

        kind, outcome, sentence = ended(window, qtbot, presenter.layers.measure_button.click)
        assert (kind, outcome) == (Kind.LAYERS, Outcome.FINISHED), sentence
        qtbot.waitUntil(lambda: presenter.choice.record.measure(DIVERGENCE) is not None, timeout=PATIENCE)
        assert {one.measure for one in presenter.layers.bars.measures} >= {DIVERGENCE, COSINE}

        window.state.loading.load_model("f5-mini")
        qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE)
        assert "decodes no tokens" in window.panels["layers"].can["study"].reason
        window.action["new_study"].trigger()
        assert not studies.maker.kind.model().item(studies.maker.kind.findData(KIND.name)).isEnabled()
        studies.maker.reject()
