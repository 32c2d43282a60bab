"""The command line with the bundled flow model."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone import models
from paretone.models import catalogue
from paretone.models.base import SpeechModel
from paretone.models.catalogue import entry
from paretone.sampling.actions import SkipAction
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.command_line import Console, loaded
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.voices import FIRST, SECOND
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

GUIDANCE = entry("f5-mini").options_with()["guidance"]

TEXT = workload("Rice is often served.", "Rice.")
UNSEEN = workload("Kick the ball.", "Tea.")
STEPS = "4"


@pytest.fixture(scope="module")
def model() -> SpeechModel:
    return loaded("f5-mini", device="cpu")


@pytest.fixture
def paretone(console: Console, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Runs the command line in this process, with the model that is loaded already."""
    monkeypatch.setattr(models, "load_model", loaded)
    return console


@pytest.fixture(scope="module")
def profile(model: SpeechModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with a table made by hand."""
    setting = Setting("f5-mini", catalogue.entry("f5-mini").options_with(steps=int(STEPS)), seed=3)
    table = StrategyTable.computing(compatibility_of(model.info, setting), model.info.layers)
    for layer in range(1, model.info.layers):
        table = table.changed(layer, 2, SkipAction.TS).changed(layer, 3, SkipAction.BS)
    used = UsedTechnique("ditreducio", artefact=table.fingerprint)
    path = tmp_path_factory.mktemp("profile") / "p.json"
    Profile.of(setting.with_technique(used), model.info, (table,)).save(path)
    return path


@pytest.mark.slow
def test_speaking_as_the_application_does(paretone: Console, model: SpeechModel, tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    data = paretone.data("speak", "--text", TEXT, "--steps", STEPS, "--seed", "3", "--out", out, "--json")
    samples, rate = soundfile.read(out, dtype="float32")
    assert rate == model.info.sample_rate
    assert data["samples"] == len(samples)
    assert data["evaluations"] == int(STEPS)
    assert data["setting"]["seed"] == 3
    assert data["ops_ratio"] == 1.0
    assert np.abs(samples).max() > 0.01
    again = paretone("speak", "--text", TEXT, "--steps", STEPS, "--seed", "3", "--out", tmp_path / "b.wav")
    assert again.code == 0 and "100 %" in again.err
    assert (tmp_path / "b.wav").read_bytes() == out.read_bytes()


@pytest.mark.slow
def test_a_profile_gives_the_same_samples_everywhere(paretone: Console, profile: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    outcome = paretone("speak", "--profile", profile, "--text", TEXT, "--out", out, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.data["ops_ratio"] < 0.8
    samples, _ = soundfile.read(out, dtype="float32")
    from_python = Profile.load(profile).synthesise(TEXT, device="cpu")
    assert np.array_equal(from_python.samples, samples)
    assert from_python.measurements.ops_ratio == outcome.data["ops_ratio"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("--steps", "8"), "it belongs to number of steps 4, but 8 is in use"),
        (("--technique", "ditreducio"), "give either --profile or --technique"),
        (("--as", "T2"), "give either --profile or --technique"),
    ],
)
def test_a_profile_for_another_grid_is_refused(
    paretone: Console, profile: Path, tmp_path: Path, changes: tuple[str, ...], words: str
) -> None:
    outcome = paretone("speak", "--profile", profile, "--text", TEXT, "--out", tmp_path / "a.wav", *changes)
    assert outcome.code in (2, 6) and words in outcome.err
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_profile_measured_with_a_recording_of_ones_own(paretone: Console, profile: Path, tmp_path: Path) -> None:
    data = json.loads(profile.read_text(encoding="utf-8"))
    data["evidence"]["voice"] = "own:/gone/me.wav"
    (tmp_path / "p.json").write_text(json.dumps(data), encoding="utf-8")
    arguments = ("speak", "--profile", tmp_path / "p.json", "--text", TEXT, "--out", tmp_path / "a.wav")
    asked = paretone.refusal(*arguments, code=4)
    assert "measured with the recording me.wav" in asked and "Traceback" not in asked
    assert paretone(*arguments, "--voice", SECOND).code == 0
    assert (tmp_path / "a.wav").is_file()


@pytest.mark.slow
def test_official_tables_there_and_back(paretone: Console, profile: Path, tmp_path: Path) -> None:
    official, back = tmp_path / "4_0.1.json", tmp_path / "back.json"
    assert paretone("export-table", profile, "--out", official).code == 0
    assert set(json.loads(official.read_text())) == {"methods", "need_cached_output"}
    paretone.out("import-table", official, "--steps", STEPS, "--seed", "3", "--out", back)
    assert Profile.load(back).artefact("table").fingerprint == Profile.load(profile).artefact("table").fingerprint
    for name, arguments in (
        ("a", ("--profile", profile)),
        ("b", ("--profile", back)),
        ("c", ("--technique", "ditreducio", "--table", official, "--steps", STEPS, "--seed", "3")),
    ):
        assert paretone("speak", *arguments, "--text", TEXT, "--out", tmp_path / f"{name}.wav").code == 0
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes() == (tmp_path / "c.wav").read_bytes()
    wrong = paretone.refusal("import-table", official, "--steps", "8", "--out", back, code=6)
    assert "has 4 steps in layer 1, but its grid has 8" in wrong


@pytest.mark.slow
def test_calibrating_for_what_else_is_used(paretone: Console, model: SpeechModel, tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.json" for name in ("profile", "table", "official")}
    arguments = [part for name, path in places.items() for part in (f"--{name}", path)]
    pruned = ("--technique", "steps:steps=3;spacing=uniform", "--steps", STEPS)
    chosen = (*pruned, "--threshold", "0.3", "--metric", "mae")
    outcome = paretone("calibrate", "--text", TEXT, *chosen, *arguments, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.data
    made = Profile.load(places["profile"])
    table = made.artefact("table")
    assert made.setting.technique("ditreducio").knobs["threshold"] == 0.3
    assert (table.layers, table.steps) == (model.info.layers, 3)
    assert 0 < found["skipped_share"] == table.skipped_share and found["ops_ratio"] < 0.75
    assert found["accepted"] <= found["trials"]
    assert made.evidence.metrics["ops_ratio"] == pytest.approx(found["ops_ratio"])
    assert made.evidence.metrics["log_mel_distance"] > 0
    assert made.evidence.voice == FIRST
    assert StrategyTable.from_json(json.loads(places["table"].read_text())) == table
    assert json.loads(places["official"].read_text()) == table.to_official()
    assert "Calibration" in outcome.err
    made.check(model.info, compatibility_of(model.info, made.setting))


@pytest.mark.slow
def test_comparing_a_profile_with_its_baseline(paretone: Console, profile: Path, tmp_path: Path) -> None:
    more = "--text", TEXT, "--repeats", "1", "--out", tmp_path / "both", "--json"
    found = paretone.data("compare", "baseline", profile, *more)
    assert found["a"]["ops_ratio"] == 1.0
    assert found["b"]["ops_ratio"] < 0.8
    assert found["a"]["samples"] == found["b"]["samples"]
    assert found["log_mel_distance"] > 0
    assert {one["what"] for one in found["differences"]} == {"ditreducio"}
    for path, side in zip(found["files"], ("a", "b"), strict=True):
        assert soundfile.info(path).frames == found[side]["samples"]
    assert paretone("compare", "baseline", f"steps=8,table={profile}", "--text", TEXT).code == 6
    missing = paretone.refusal("compare", "baseline", "as=T2,technique=ditreducio", "--text", TEXT)
    assert "needs its strategy table: give table=FILE" in missing
    assert "--table table.json --as T2" in missing and "Synthesising" not in missing


@pytest.mark.slow
def test_comparing_several_texts_gives_medians_and_says_what_differs(paretone: Console, tmp_path: Path) -> None:
    sentences = ("Rice.", UNSEEN, workload("These days a chicken leg is rare.", "Go."))
    (tmp_path / "texts.txt").write_text("\n".join((*sentences, "", "")), encoding="utf-8")
    sides = ("steps=1", "steps=3,guidance=1.5,technique=steps:steps=2")
    arguments = ("compare", *sides, "--text-file", tmp_path / "texts.txt", "--repeats", "1")
    found = paretone.data(*arguments, "--out", tmp_path / "out", "--json")
    assert [one["text"] for one in found["texts"]] == list(sentences)
    for name in ("real_time_factor", "first_audio_seconds", "audio_seconds", "seconds"):
        assert found["b"][name] == np.median([one["b"][name] for one in found["texts"]])
    assert found["log_mel_distance"] == np.median([one["log_mel_distance"] for one in found["texts"]])
    assert found["speed_up"]["median"] == np.median([one["speed_up"]["median"] for one in found["texts"]])
    assert {one["what"] for one in found["differences"]} == {"steps", "guidance"}
    assert found["b"]["ops_ratio"] == pytest.approx(2 / 3)
    assert sorted(os.listdir(tmp_path / "out")) == [f"{side}-00{n}.wav" for side in "ab" for n in (1, 2, 3)]
    (tmp_path / "texts.txt").write_text("Rice.\nTea.", encoding="utf-8")
    said = paretone(*arguments).out
    assert "Medians over the texts:" in said and "times as fast as A" in said
    assert "B against A: Log-mel distance" in said and f"guidance ({GUIDANCE:g} and 1.5), steps (1 and 3)" in said
    assert "RTF (s/s)" in said and "TTFA (s)" in said


@pytest.mark.slow
def test_calibrating_at_several_thresholds(paretone: Console, tmp_path: Path) -> None:
    few = ("--text", workload(TEXT, "Rice."), "--steps", "3", "--no-evidence")
    arguments = ("calibrate", *few, "--json", "--table", tmp_path / "t.json")
    small, large, same = paretone.data(*arguments, "--thresholds", "0.1", "0.4", "0.1000001")["calibrations"]
    assert sorted(os.listdir(tmp_path)) == ["t-0.1.json", "t-0.1000001.json", "t-0.4.json"]
    assert small["ops_ratio"] > large["ops_ratio"]
    assert (small["same_as"], large["same_as"], same["same_as"]) == (None, None, 0.1)
    for one in (small, large, same):
        low, high = one["exact_interval"]
        assert low < one["threshold"] <= high
        table = StrategyTable.from_json(json.loads(Path(one["table"]).read_text()))
        assert one["cells"] == {action.name: table.count(action) for action in SkipAction}
        assert f"calibrated at threshold {one['threshold']:g}" in table.origin


@pytest.mark.slow
def test_calibrating_on_several_sentences_and_measuring_the_transfer(paretone: Console, tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.json" for name in ("profile", "table")}
    arguments = [part for name, path in places.items() for part in (f"--{name}", path)]
    texts = ["--text", "Rice.", "--voice", FIRST, "--voice", SECOND]
    chosen = ("--combine", "mean", "--steps", "2", "--threshold", "0.5")
    found = paretone.data("calibrate", *texts, *chosen, *arguments, "--json")
    spoken = [(one["text"], one["voice"]) for one in found["sentences"]]
    assert spoken == [("Rice.", FIRST), ("Rice.", SECOND)], "the shorter list starts over"
    assert found["combine"] == "mean"
    table = StrategyTable.from_json(json.loads(places["table"].read_text()))
    assert "on the mean error of 2 sentences" in table.origin

    unseen = ["--text", UNSEEN, "--voice", SECOND, "--voice", FIRST]
    report = paretone.data("transfer", "--profile", places["profile"], *unseen, "--json")
    assert [one["sentence"]["text"] for one in report["calibrated"]] == ["Rice."], "that of the profile's evidence"
    spoken = [(one["sentence"]["text"], one["sentence"]["voice"]) for one in report["unseen"]]
    assert spoken == [(UNSEEN, SECOND), (UNSEEN, FIRST)]
    assert report["table"] == table.fingerprint
    assert report["threshold"] == 0.5
    assert all(one["distance"] > 0 for one in report["unseen"])

    own = ["--own-text", "Rice.", "--own-voice", SECOND]
    shown = paretone.out("transfer", "--table", places["table"], *unseen[:4], *own)
    for words in ("Rice.", UNSEEN, "skips beyond bound (%)", "its own", "ops ratio"):
        assert words in shown


# --- paretone roofline ------------------------------------------------------------------------------------------------
def forwards(measured: dict) -> int:
    return next(one["forwards"] for one in measured["phases"] if one["name"] == "evaluation")


@pytest.fixture
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    keep_known_ceilings()


def test_the_posts_table_needs_no_model(tmp_path: Path, console: Console) -> None:
    table = tmp_path / "table.csv"
    out = console.out("roofline", "--published", "--csv", str(table))
    figures = "1,728 launches each (61 per layer)", "10.15", "0.3224", "Ceilings in float32: 67,000 GFLOP/s"
    for said in (*figures, "The floor is 23.9 ms; 55,296 launches take 608 ms"):
        assert said in out
    assert len([line for line in table.read_text().splitlines() if line[0] != "#"]) == 1 + 7


def test_another_card_is_on_paper(known_ceilings: None, console: Console) -> None:
    options = ["--text", "Rice.", "--steps", "2", "--setting", "steps:steps=1", "--quiet"]
    data = console.data("roofline", *options, "--card", "rtx-4090", "--json")
    assert data["measured_seconds"] == 0 < data["floor_seconds"]
    assert data["ceilings"]["operations"]["float32"] == 82.6e12
    assert all(one["measured_seconds"] is None and one["launches_per_call"] >= 0 for one in data["components"])
    assert "NVIDIA L20 data sheet" in console.out("roofline", "--published", "--card", "l20")
    technique = ["--card", "l20", "--technique", "ditreducio"]
    assert "needs its strategy table" in console.refusal("roofline", *options[:2], *technique)
    assert "not for models like LM mini" in console.refusal("roofline", *options[:2], *technique, "--model", "lm-mini")
    assert "give one of them" in console.refusal("roofline", "--card", "l20", "--again")


def test_options_change_a_profile_as_they_do_in_speak(known_ceilings: None, tmp_path: Path, console: Console) -> None:
    profile, out = tmp_path / "p.json", str(tmp_path / "a.wav")
    console("speak", "--text", "Rice.", "--steps", "3", "--out", out, "--keep-profile", str(profile), "--quiet")
    asked = ["roofline", "--text", "Rice.", "--profile", str(profile), "--card", "l20", "--quiet", "--json"]
    assert [forwards(console.data(*asked, *more)) for more in ([], ["--steps", "2"])] == [3, 2]


@pytest.mark.slow
def test_a_setting_is_measured_and_compared(known_ceilings: None, tmp_path: Path, console: Console) -> None:
    trace = tmp_path / "trace.json"
    options = ["--steps", "2", "--setting", "steps:steps=1", "--compare", "--rounds", "1", "--trace", str(trace)]
    data = console.data("roofline", "--text", "Rice.", *options, "--quiet", "--json")
    assert (forwards(data), forwards(data["baseline"])) == (1, 2)
    # How much longer than the floor it takes depends on the machine, whose ceilings these are not.
    assert data["measured_seconds"] > 0 and data["baseline"]["measured_seconds"] > 0
    assert 0 < data["floor_seconds"] < data["baseline"]["floor_seconds"]
    assert {one["bound"] for one in data["components"] if one["component"] != "rest"} <= {"compute", "memory", "launch"}
    assert json.loads(trace.read_bytes())["traceEvents"]


def test_a_trace_without_a_folder_is_refused_before_anything_runs(tmp_path: Path, console: Console) -> None:
    assert "does not exist" in console.refusal("roofline", "--trace", str(tmp_path / "no" / "trace.json"))


def test_a_setting_is_a_profile_or_techniques(tmp_path: Path, console: Console) -> None:
    missing, other = str(tmp_path / "missing.json"), str(tmp_path / "other.json")
    assert "missing.json" in console.refusal("roofline", "--setting", missing)
    assert "Give only one profile" in console.refusal("roofline", "--setting", missing, "--setting", other)
    assert console("roofline", "--setting", missing, "--setting", "steps").code != 0
    assert "There is no technique named 'no_such'" in console.refusal("roofline", "--setting", "no_such")
