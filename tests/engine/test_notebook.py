"""Paretone in Python: a model that stays loaded, and what is done with it."""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

import paretone
from paretone import notebook
from paretone.errors import Cancelled, PlainError, SettingError, StudyError
from paretone.models import catalogue
from paretone.models.base import Utterance
from paretone.notebook import Model, Rows
from paretone.setting.profile import Profile
from paretone.techniques import technique

pytestmark = pytest.mark.usefixtures("short_prompts")
TEXT = "Rice."
FEW = {"steps": 2}
TABLE = {"ditreducio": {"threshold": 0.3}}


@pytest.fixture(scope="module")
def model() -> Model:
    return paretone.load("f5-mini", device="cpu")


@pytest.fixture(scope="module")
def sweep(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    searched, folder = {"ditreducio": {"threshold": [0.1, 0.5]}}, tmp_path_factory.mktemp("sweep")
    return model.sweep([TEXT], options=FEW, techniques=searched, calibration=[TEXT], folder=folder)


def test_a_take_is_saved_and_its_profile_gives_the_same_samples(model: Model, tmp_path: Path) -> None:
    """From here, from the profile's file here, and from the profile alone."""
    speech = model.speak(TEXT, "bella", options=FEW, techniques=TABLE, seed=3)
    speech.save(tmp_path / "fast.wav")
    speech.profile().save(tmp_path / "fast.paretone.json")
    written, rate = soundfile.read(tmp_path / "fast.wav", dtype="float32")
    assert np.array_equal(written, speech.samples) and rate == speech.sample_rate
    again = model.speak(TEXT, profile=tmp_path / "fast.paretone.json")
    alone = Profile.load(tmp_path / "fast.paretone.json").synthesise(TEXT, device="cpu")
    assert np.array_equal(again.samples, speech.samples) and np.array_equal(alone.samples, speech.samples)
    assert again.setting == speech.setting and again.voice.id == "bella"


def test_what_a_technique_lacks_is_calibrated_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model.speak(TEXT, options=FEW, techniques={"ditreducio": {"threshold": 0.31}})
    monkeypatch.setattr(notebook, "calibrated", lambda *given: pytest.fail("calibrated again"))
    second = model.speak("Milk.", options=FEW, techniques={"ditreducio": {"threshold": 0.31}})
    assert first.artefacts == second.artefacts and len(first.artefacts) == 1
    assert model.speak(TEXT, options=FEW).measurements.ops_ratio == 1 > first.measurements.ops_ratio


def test_a_calibration_on_other_texts_is_given_to_speak_and_a_job_does_the_same(model: Model) -> None:
    calibrated = model.calibrate("ditreducio", [TEXT, "Milk."], options=FEW, threshold=0.3)
    speech = model.speak(TEXT, options=FEW, techniques={"ditreducio": calibrated})
    assert speech.artefacts == (calibrated.artefact,)
    assert speech.setting.techniques == (calibrated.used,) and calibrated.used.knobs["threshold"] == 0.3
    said = tuple(Utterance(one, catalogue.voice()) for one in (TEXT, "Milk."))
    prepared = model.prepare("ditreducio", "calibrate", setting=model.setting(FEW, TABLE), utterances=said)
    assert prepared.record.table == calibrated.artefact


def test_trained_weights_go_by_name(model: Model) -> None:
    declared = technique("guidance_free").weights
    assert declared is not None
    for one in declared.all_of(model.info):
        named = model.setting(FEW, {"guidance_free": {"weights": Path(one.path).stem}})
        assert named.techniques[0].artefact == one.fingerprint
    free = model.speak(TEXT, options=FEW, techniques={"guidance_free": {}})
    assert free.measurements.ops_ratio == pytest.approx(0.5, abs=0.01)


def test_settings_are_as_published(model: Model) -> None:
    """Given values stay; what is otherwise than in the paper is said."""
    free = model.setting(techniques={"guidance_free": {}}, as_published="w=0.67-epss")
    assert (free.options["steps"], free.options["guidance"], free.techniques[0].knobs["weight"]) == (7, 2.0, 0.67)
    named = model.setting(as_published="w=0.67-epss")
    assert named.techniques[0].technique == "guidance_free" and named.options == free.options
    with pytest.raises(PlainError, match=r"it has T0, T1"):
        model.setting(techniques={"ditreducio": {}}, as_published="T7")
    table = model.calibrate("ditreducio", TEXT, options=FEW, as_published=True)
    assert table.used.knobs["threshold"] == 0.2 and table.used.knobs["metric"] == "relative"
    speech = model.speak(TEXT, options=FEW, techniques={"ditreducio": table}, as_published="T4")
    assert speech.setting.options["guidance"] == 2.0 and speech.setting.techniques == (table.used,)
    (said,) = speech.published
    assert said.startswith("DiTReducio is set as T4 (arXiv 2509.09748, table 1, F5-TTS), except Steps 2, not 32; model")
    assert model.speak(TEXT, options=FEW).published == ()


def test_times_are_medians_of_repeats_and_a_notebook_shows_a_player(model: Model) -> None:
    speech = model.speak(TEXT, options=FEW, repeat=2)
    assert len(speech.repeats) == 2 and paretone.spread(speech, "seconds") is not None
    assert speech.measurements.seconds == pytest.approx(np.median([one.seconds for one in speech.repeats]))
    shown = speech._repr_html_()
    assert "<audio controls" in shown and "RTF" in shown


def test_views_and_rooflines_are_computed(model: Model) -> None:
    figure = model.view("attention-maps", TEXT, options=FEW, layer=1, step=1)
    assert (figure.view, dict(figure.provenance.knobs)["step"]) == ("attention-maps", 1) and figure.panels
    report = model.roofline(TEXT, options=FEW, techniques={"guidance_free": {}}, card="h100")
    assert not report.measured and "H100" in report.ceilings.device and report.total > 0


def test_the_first_codebooks_of_a_take_can_be_heard() -> None:
    speech = paretone.load("omni-mini", device="cpu").speak(TEXT, options=FEW)
    first, every = speech.first_codebooks(1), speech.first_codebooks(8)
    assert len(first) == len(every) and not np.allclose(first, every)


def test_a_sweep_has_the_baseline_and_every_combination(sweep: Rows) -> None:
    assert [row["origin"] for row in sweep] == ["baseline", "grid", "grid"]
    assert [row["ditreducio.threshold"] for row in sweep] == [None, 0.1, 0.5]
    assert [row["takes"] for row in sweep] == [1, 1, 1]
    assert sweep[0]["speed_up"] == 1 and sweep[0]["ops_ratio"] == 1 > sweep[2]["ops_ratio"]
    assert len(sweep.takes) == 3 and all(Path(row["audio"]).is_file() for row in sweep.takes)
    assert {row["setting"] for row in sweep.takes} == {row["setting"] for row in sweep}
    assert sweep.front("ops_ratio") == [min(sweep, key=lambda row: row["ops_ratio"])]
    assert not sweep.problems
    assert list(sweep.to_pandas()["setting"]) == [row["setting"] for row in sweep]
    assert len(sweep.to_pandas(takes=True)) == len(sweep.takes)


def test_a_sweep_over_an_evaluation_set(model: Model, tmp_path: Path) -> None:
    voice = catalogue.voice()
    line = f"a|{voice.transcript}|{voice.audio}|Milk.\n"
    (tmp_path / "meta.lst").write_text(f"{line}b|{TEXT}|none.wav|Tea.\n")
    with pytest.raises(StudyError, match=r"none\.wav of the list .*meta\.lst is missing"):
        model.sweep(manifest=tmp_path / "meta.lst", options=FEW, folder=tmp_path / "refused")
    (tmp_path / "meta.lst").write_text(line * 2)
    rows = model.sweep(manifest=tmp_path / "meta.lst", count=1, options=FEW, folder=tmp_path / "sweep")
    assert [row["text"] for row in rows.takes] == ["Milk."]
    with pytest.raises(StudyError, match="manifest has its own sentences"):
        model.sweep([TEXT], manifest=tmp_path / "meta.lst", folder=tmp_path / "both")
    with pytest.raises(SettingError, match="give texts, or the list of an evaluation set"):
        model.sweep()
    with pytest.raises(StudyError, match="T9"):
        model.sweep([TEXT], options=FEW, as_published=("T2", "T9"), folder=tmp_path / "published")


def test_a_sweep_in_a_folder_is_a_study_that_continues(model: Model, sweep: Rows) -> None:
    made = {row["created"] for row in sweep.takes}
    searched, folder = {"ditreducio": {"threshold": [0.1, 0.5, 0.9]}}, sweep.folder.parent
    more = model.sweep([TEXT], options=FEW, techniques=searched, calibration=[TEXT], folder=folder)
    assert len(more) == 4 and made < {row["created"] for row in more.takes}
    assert len(paretone.run_study(folder / "sweep.json")) == 4


def test_a_sweep_without_a_folder_speaks_the_lines_of_a_file_and_leaves_nothing(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.txt").write_text("Milk.\n")
    monkeypatch.chdir(tmp_path)
    rows = model.sweep("lines.txt", options=FEW)
    folder = rows.folder
    assert [row["text"] for row in rows.takes] == ["Milk."] and folder.is_dir()
    del rows
    assert not folder.parent.exists()


def test_a_profile_is_exported_for_another_program(model: Model, tmp_path: Path) -> None:
    profile = model.speak(TEXT, options=FEW).profile()
    profile.save(tmp_path / "p.json")
    written = model.export(profile, "f5-tts", tmp_path / "out")
    assert written and all(path.is_file() for path in written)
    again = model.export(tmp_path / "p.json", "f5-tts", tmp_path / "again")
    assert [path.name for path in again] == [path.name for path in written]


def trained(**given: object) -> Callable[[Model], object]:
    return lambda model: model.prepare("guidance_free", weight=0.5, work="none", **given)


REFUSED: dict[str, tuple[Callable[[Model], object], str]] = {
    "model": (lambda model: paretone.load("f5-mimi"), "did you mean 'f5-mini'"),
    "vocoder": (lambda model: paretone.load("f5-mini", vocoder="here"), "comes with its vocoder"),
    "option": (lambda model: model.speak(TEXT, options={"stps": 4}), "did you mean 'steps'"),
    "technique": (lambda model: model.speak(TEXT, techniques={"ditreduco": {}}), "did you mean 'ditreducio'"),
    "knob": (lambda model: model.speak(TEXT, techniques={"ditreducio": {"delta": 1}}), "no knob named 'delta'"),
    "part's length": (lambda model: paretone.parts(TEXT, longest=0), "longest must be at least 1, not 0"),
    "profile and options": (lambda model: model.speak(TEXT, profile="p.json", options=FEW), "either these or it"),
    "calibrated": (lambda model: model.calibrate("steps", TEXT), "is not calibrated"),
    "sweep's knob": (lambda model: model.sweep([TEXT], techniques={"steps": {"step": [4]}}), "^grid.*no knob named"),
    "sweep's values": (lambda model: model.sweep([TEXT], options={"steps": [object()]}), "numbers, texts and lists"),
    "no option": (lambda model: model.setting({"steps": None}), "Steps must be a number, not None"),
    "file's name": (lambda model: model.speak(TEXT, profile="a\0"), r"profile cannot be 'a\\x00'"),
    "time": (lambda model: paretone.spread(model.speak(TEXT, options=FEW).take, "second"), "did you mean 'seconds'"),
    "job's setting": (
        lambda model: model.prepare("ditreducio", "calibrate", setting=3, utterances=()),
        "setting must be a Setting",
    ),
    "job's endless time": (trained(minutes=float("nan")), "minutes must be a number, not nan"),
    "no such job": (lambda model: model.prepare("ditreducio", "polish"), "no job named 'polish'"),
    "job's field": (lambda model: model.prepare("guidance_free", "train", minuts=1), "did you mean 'minutes'"),
    "job's choice": (
        lambda model: model.prepare("spade", "train", work="none", steps=1, importance="size"),
        "no importance 'size'; known: word_error",
    ),
    "training's times": (trained(steps=1, times="early"), "no flow times 'early'; known: swayed, uniform"),
    "card": (lambda model: model.roofline(TEXT, card="h10"), "h100"),
    "codebooks": (lambda model: model.speak(TEXT, options=FEW).first_codebooks(1), "F5 mini has no codebooks"),
    "study": (lambda model: paretone.run_study("no.toml"), "There is no study"),
    "sweep's folder": (lambda model: model.sweep([TEXT], folder=__file__), "is a file; give the name of a folder"),
    "a text alone": (lambda model: model.sweep(TEXT), "Rice. is no text file .*give a list, a file, or one of harvard"),
    "job's required field": (lambda model: model.prepare("guidance_free", work="none"), "train also needs weight"),
    "workers": (lambda model: paretone.run_study("no.toml", workers=2), "workers needs ray"),
}


def test_whatever_is_public_checks_its_arguments() -> None:
    """Not checked: data, and what documents errors of its own."""
    for name in {*paretone.__all__} - {"PlainError", "Take", "EngineThread", "finished_part", "lexicon", "__version__"}:
        found = getattr(paretone, name)
        inner = [getattr(found, key) for key in vars(found) if not key.startswith("_")]
        for one in filter(callable, inner if isinstance(found, type) else [found]):
            assert hasattr(one, "__wrapped__"), one


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_get_a_sentence(case: str, model: Model) -> None:
    call, said = REFUSED[case]
    with pytest.raises(PlainError, match=said):
        call(model)


def test_cautions_are_warnings(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a transcript that a recording does not say."""
    recording = model.speak(TEXT, options=FEW)
    with pytest.warns(UserWarning, match="transcript|says|words"):
        model.speak(TEXT, recording.voice.audio, transcript="Nothing of the kind is ever said in here.", options=FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.speak(TEXT, options=FEW)


def test_it_is_cancelled_from_another_thread(model: Model) -> None:
    done: list[str] = []
    said: list[BaseException] = []

    def speak() -> None:
        try:
            model.speak("One. Two. Three.", options={"steps": 128})
            done.append("spoken to the end")
        except Cancelled as error:
            said.append(error)

    thread = threading.Thread(target=speak)
    thread.start()
    while thread.is_alive():
        model.cancel()
        thread.join(0.05)
    assert said and not done
    assert model.speak(TEXT, options=FEW).seconds > 0, "what was cancelled is over"


def test_what_was_finished_survives_an_interrupt(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model.speak(". ".join(["Rice is often served in round bowls"] * 5) + ".", options={"steps": 1})
    passages = len(whole.take.trace.chunk_texts)
    assert passages > 1

    def interrupted(samples: np.ndarray, what: str, *others: object) -> np.ndarray:
        if what == "piece 2":
            raise KeyboardInterrupt
        return samples

    monkeypatch.setattr("paretone.session.synthesis.audible", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.speak(whole.take.text, options={"steps": 1})
    part = paretone.finished_part(stopped.value)
    assert part is not None and f"1 of {passages}" in part.unfinished
