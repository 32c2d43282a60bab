"""The command line, with the bundled model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile

import engine
from engine import cli, models
from engine.commands.technique_args import engaged
from engine.errors import CheckpointError, PlainError, SettingError
from engine.models import catalogue, load_model
from engine.models.base import SpeechModel
from engine.models.f5.checkpoint import VariantUnknown
from engine.sampling.actions import SkipAction
from engine.setting.knobs import Values
from engine.setting.profile import Profile
from engine.setting.setting import Engaged, Setting
from engine.techniques.ditreducio.table import StrategyTable
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

TEXT = "Rice is often served."
STEPS = "4"


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of one run of the command line."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict:
        """The one object on standard output."""
        return json.loads(self.out)


@pytest.fixture(scope="module")
def model() -> SpeechModel:
    """The bundled model, loaded once for all tests here."""
    return load_model("f5-mini", device="cpu")


@pytest.fixture
def paretone(
    model: SpeechModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Runs the command line in this process, with the model that is loaded already."""
    monkeypatch.setattr(models, "load_model", lambda name, **more: model)
    return _runner(capsys)


@pytest.fixture
def without_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Runs the command line where it must not get as far as loading a model."""
    monkeypatch.setattr(models, "load_model", lambda name, **more: pytest.fail("a model was loaded"))
    return _runner(capsys)


def _runner(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            code = cli.main([str(one) for one in arguments])
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="module")
def profile(model: SpeechModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with a table made by hand."""
    setting = Setting("f5-mini", catalogue.entry("f5-mini").options_with(steps=int(STEPS)), seed=3)
    table = StrategyTable.computing(model.compatibility(setting), model.info.layers)
    for layer in range(1, model.info.layers):
        table = table.changed(layer, 2, SkipAction.TS).changed(layer, 3, SkipAction.BS)
    engaged = Engaged("ditreducio", artefact=table.fingerprint)
    path = tmp_path_factory.mktemp("profile") / "p.json"
    Profile.of(setting.with_technique(engaged), model.info, (table,)).save(path)
    return path


# --- Without a model --------------------------------------------------------------------------------------------------
def test_help_is_quick_because_it_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from engine.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    print(sorted({'torch', 'soundfile', 'PySide6', 'sqlite3'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    for words in (
        "download",
        "speak",
        "calibrate",
        "compare",
        "bench",
        "130  Cancelled",
        "6  A profile or strategy table",
    ):
        assert words in done.stdout


@pytest.mark.parametrize(
    "command", ["models", "download", "speak", "calibrate", "transfer", "compare", "export-table", "import-table"]
)
def test_every_command_has_help(without_model: Callable[..., Outcome], command: str) -> None:
    outcome = without_model(command, "--help")
    assert outcome.code == 0
    assert "--json" in outcome.out


def test_techniques_are_listed_with_their_knobs(without_model: Callable[..., Outcome]) -> None:
    listed = without_model("models", "--json").data["techniques"]
    knobs = {one["name"]: [knob["name"] for knob in one["knobs"]] for one in listed}
    assert knobs["steps"] == ["steps", "spacing", "sway"]
    assert knobs["guidance_free"] == ["weight"]
    assert knobs["precision"] == ["precision"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("magic", "no technique named 'magic'"),
        ("steps:steps", "'steps' is not a knob of Step pruning; write KNOB=VALUE"),
        ("steps:stepz=7", "Step pruning has no knob named 'stepz'"),
        ("steps:steps=7,spacing=epss", "by ';', not ',', and put quotes.*: 'steps:steps=7;spacing=epss'"),
        ("graphs:bucket=64, most=8", "'graphs:bucket=64;most=8'"),
        ("steps:steps=7,5", "Steps must be a number, not '7,5'"),
        ("steps:steps=seven", "Steps must be a number, not 'seven'"),
        ("precision:precision=float8", "Precision must be one of"),
    ],
)
def test_techniques_that_cannot_be_read_are_refused(typed: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        engaged(typed)


def test_techniques_are_read_from_arguments() -> None:
    assert engaged("steps:steps=6; spacing=uniform").knobs == Values(steps=6, spacing="uniform", sway=-1.0)
    assert engaged("precision") == Engaged("precision", Values(precision="bfloat16"))


def test_exit_codes_in_the_help_are_those_of_the_errors(without_model: Callable[..., Outcome]) -> None:
    text = without_model("--help").out
    # Other modules' errors, which other tests may have imported, never reach the command line.
    for kind in (one for one in PlainError.__subclasses__() if one.__module__ == PlainError.__module__):
        assert f"{kind.exit_code}  {kind.__doc__.split('.')[0].split(';')[0]}" in text


def test_version(without_model: Callable[..., Outcome]) -> None:
    assert without_model("--version").out.strip() == f"paretone {engine.__version__}"


def test_models(without_model: Callable[..., Outcome]) -> None:
    outcome = without_model("models", "--json")
    assert outcome.code == 0
    found = {one["id"]: one for one in outcome.data["models"]}
    assert found["f5-mini"]["available"] is True
    assert found["F5TTS_v1_Base"]["licence"] == "CC-BY-NC-4.0"
    assert found["F5TTS_v1_Base"]["available"] is False
    assert [one["id"] for one in outcome.data["voices"]] == ["slt", "rms"]
    assert found["F5TTS_v1_Base"]["downloadable"] is True
    listed = without_model("models").out
    assert "f5-mini" in listed
    assert "download with: paretone download F5TTS_v1_Base" in listed


def test_benches_are_listed(without_model: Callable[..., Outcome]) -> None:
    outcome = without_model("bench")
    assert outcome.code == 0
    assert "skipping" in outcome.out
    unknown = without_model("bench", "nothing", "--json")
    assert unknown.code == 2
    assert unknown.data["kind"] == "SettingError"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("speak", "--text", "a", "--out", "no/where.wav"), 1, "The folder no does not exist"),
        (("speak", "--text", "a", "--out", "."), 1, ". is a folder"),
        (("speak", "--text-file", "none.txt", "--out", "a.wav"), 3, "The text none.txt could not be read"),
        (("speak", "--text", "a", "--out", "a.wav", "--voice", "nobody"), 2, "There is no voice named 'nobody'"),
        (("speak", "--text", "a", "--out", "a.wav", "--voice", "none.wav"), 4, "The recording none.wav does not exist"),
        (("speak", "--text", "a", "--out", "a.wav", "--transcript", "b"), 4, "--transcript needs a recording"),
        (("speak", "--text", "a", "--out", "a.wav", "--profile", "none.json"), 6, "There is no profile none.json"),
        (("speak", "--text", "a", "--out", "a.wav", "--model", "gpt"), 2, "There is no model named 'gpt'"),
        (("calibrate", "--text", "a"), 2, "No output: give"),
        (("calibrate", "--table", "t.json", "--transcript", "a"), 4, "more --transcript options than recordings"),
        (("calibrate", "--table", "t.json", "--text-file", "/dev/null"), 3, "has no text"),
        (("transfer", "--table", "none.json"), 6, "none.json could not be read"),
        (("transfer", "--profile", "none.json"), 6, "There is no profile none.json"),
        (
            ("calibrate", "--table", "t.json", "--threshold", "1", "--thresholds", "1"),
            2,
            "either --threshold or --thresholds",
        ),
        (("calibrate", "--table", "t.json", "--thresholds", "0.1", "0.2", ".1"), 2, "has a threshold twice"),
        (("calibrate", "--table", "t.json", "--thresholds", "0.1", "9"), 2, "Threshold must lie between"),
        (("calibrate", "--table", "no/t.json", "--thresholds", "0.1"), 1, "The folder no does not exist"),
        (("compare", "steps=2", "steps=4", "--text-file", "/dev/null"), 3, "has no text"),
        (("download", "gpt"), 2, "There is no model named 'gpt'"),
        (("download", "f5-mini"), 2, "F5 mini ships with Paretone"),
        (("download", "F5TTS_Base", "--accept-licence", "MIT"), 2, "is published under CC-BY-NC-4.0, not MIT"),
        (("calibrate", "--profile", "p.json", "--threshold", "-1"), 2, "Threshold must lie between"),
        (("calibrate", "--profile", "p.json", "--steps", "0"), 2, "Steps must lie between"),
        (("compare", "baseline", "baseline"), 2, "Both sides are 'baseline'"),
        (("compare", "baseline", "nonsense"), 2, "'nonsense' is not a side"),
        (("compare", "baseline", "steps=many"), 2, "Steps must be a number, not 'many'"),
        (("compare", "baseline", "pitch=1"), 2, "F5 mini has no knob named 'pitch'"),
        (("export-table", "none.json", "--out", "t.json"), 6, "There is no profile none.json"),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(
    without_model: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = without_model(*arguments)
    assert outcome.code == code
    assert words in outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    as_json = without_model(*arguments, "--json")
    assert as_json.code == code
    assert words in as_json.data["error"]
    assert as_json.data["exit_code"] == code
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("dance",), ("speak",), ("speak", "--text", "a"), ("speak", "--steps", "x", "--text", "a", "--out", "b")],
)
def test_arguments_that_make_no_sense(without_model: Callable[..., Outcome], arguments: tuple[str, ...]) -> None:
    outcome = without_model(*arguments)
    assert outcome.code == 2
    assert "usage: paretone" in outcome.err


def test_a_text_that_is_not_utf8(without_model: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes("Größe".encode("latin-1"))
    outcome = without_model("speak", "--text-file", tmp_path / "text.txt", "--out", tmp_path / "a.wav")
    assert outcome.code == 3
    assert "save it as UTF-8" in outcome.err


def test_an_architecture_that_nothing_says_is_asked_for(
    without_model: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def undecided(model: str, folder: str, variant: str, **more: object) -> SpeechModel:
        if not variant:
            raise VariantUnknown(Path(folder) / "model.safetensors", ("F5TTS_v1_Base", "F5TTS_Base"))
        raise CheckpointError(f"Asked for {variant}.")

    monkeypatch.setattr(models, "load_model", undecided)
    arguments = "speak", "--text", "a", "--out", tmp_path / "a.wav", "--folder", tmp_path
    outcome = without_model(*arguments)
    assert outcome.code == 5
    assert outcome.err.strip().endswith("Here: --variant F5TTS_v1_Base or --variant F5TTS_Base.")
    assert "Asked for F5TTS_Base." in without_model(*arguments, "--variant", "F5TTS_Base").err


def test_the_unforeseen_gets_a_sentence_and_a_traceback(
    without_model: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*arguments: object, **more: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(models, "load_model", broken)
    outcome = without_model("speak", "--text", "a", "--out", tmp_path / "a.wav", "--json")
    assert outcome.code == 1
    assert "boom" in outcome.data["error"]
    assert "Traceback" in outcome.err


# --- With the bundled model -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_speaking_as_the_application_does(paretone: Callable[..., Outcome], model: SpeechModel, tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    outcome = paretone("speak", "--text", TEXT, "--steps", STEPS, "--seed", "3", "--out", out, "--json")
    assert outcome.code == 0, outcome.err
    samples, rate = soundfile.read(out, dtype="float32")
    assert rate == model.info.sample_rate
    assert outcome.data["samples"] == len(samples)
    assert outcome.data["evaluations"] == int(STEPS)
    assert outcome.data["setting"]["seed"] == 3
    assert outcome.data["ops_ratio"] == 1.0
    assert np.abs(samples).max() > 0.01
    again = paretone("speak", "--text", TEXT, "--steps", STEPS, "--seed", "3", "--out", tmp_path / "b.wav")
    assert again.code == 0
    assert "100%" in again.err
    assert (tmp_path / "b.wav").read_bytes() == out.read_bytes()


@pytest.mark.slow
def test_a_profile_gives_the_same_samples_everywhere(
    paretone: Callable[..., Outcome], profile: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a.wav"
    outcome = paretone("speak", "--profile", profile, "--text", TEXT, "--out", out, "--json", "--quiet")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
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
        (("--spacing", "uniform"), "it belongs to step grid 'epss', but 'uniform' is in use"),
        (("--guidance", "1"), "it belongs to guidance strength 2.0, but 1.0 is in use"),
        (("--technique", "ditreducio"), "give either --profile or --technique"),
    ],
)
def test_a_profile_for_another_grid_is_refused(
    paretone: Callable[..., Outcome], profile: Path, tmp_path: Path, changes: tuple[str, ...], words: str
) -> None:
    outcome = paretone("speak", "--profile", profile, "--text", TEXT, "--out", tmp_path / "a.wav", *changes)
    assert outcome.code in (2, 6)
    assert words in outcome.err
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_profile_measured_with_a_recording_of_ones_own(
    paretone: Callable[..., Outcome], profile: Path, tmp_path: Path
) -> None:
    data = json.loads(profile.read_text(encoding="utf-8"))
    data["evidence"]["voice"] = "own:/gone/me.wav"
    (tmp_path / "p.json").write_text(json.dumps(data), encoding="utf-8")
    arguments = ("speak", "--profile", tmp_path / "p.json", "--text", TEXT, "--out", tmp_path / "a.wav")
    asked = paretone(*arguments)
    assert asked.code == 4
    assert "measured with the recording /gone/me.wav" in asked.err
    assert "Traceback" not in asked.err
    assert paretone(*arguments, "--voice", "rms").code == 0
    assert (tmp_path / "a.wav").is_file()


@pytest.mark.slow
def test_a_profile_for_other_weights_is_refused(
    paretone: Callable[..., Outcome], profile: Path, tmp_path: Path
) -> None:
    other = tmp_path / "p.json"
    data = json.loads(profile.read_text(encoding="utf-8"))
    table = StrategyTable.from_json(
        data["table"] | {"belonging": data["table"]["belonging"] | {"fingerprint": "f" * 64}}
    )
    data["checkpoint"], data["table"] = "f" * 64, table.to_json()
    data["setting"]["techniques"][0]["artefact"] = table.fingerprint
    other.write_text(json.dumps(data))
    outcome = paretone("speak", "--profile", other, "--text", TEXT, "--out", tmp_path / "a.wav")
    assert outcome.code == 6
    assert "it is for checkpoint 'ffffffffffff'" in outcome.err


@pytest.mark.slow
def test_official_tables_there_and_back(paretone: Callable[..., Outcome], profile: Path, tmp_path: Path) -> None:
    official, back = tmp_path / "4_0.1.json", tmp_path / "back.json"
    assert paretone("export-table", profile, "--out", official).code == 0
    assert set(json.loads(official.read_text())) == {"methods", "need_cached_output"}
    imported = paretone("import-table", official, "--steps", STEPS, "--seed", "3", "--out", back, "--json")
    assert imported.code == 0, imported.err
    assert Profile.load(back).artefact("table").fingerprint == Profile.load(profile).artefact("table").fingerprint
    for name, arguments in (
        ("a", ("--profile", profile)),
        ("b", ("--profile", back)),
        ("c", ("--technique", "ditreducio", "--table", official, "--steps", STEPS, "--seed", "3")),
    ):
        assert paretone("speak", *arguments, "--text", TEXT, "--out", tmp_path / f"{name}.wav").code == 0
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes() == (tmp_path / "c.wav").read_bytes()
    wrong = paretone("import-table", official, "--steps", "8", "--out", back)
    assert wrong.code == 6
    assert "has 4 steps in layer 1, but its grid has 8" in wrong.err


@pytest.mark.slow
def test_calibrating(paretone: Callable[..., Outcome], model: SpeechModel, tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.json" for name in ("profile", "table", "official")}
    arguments = [part for name, path in places.items() for part in (f"--{name}", path)]
    outcome = paretone(
        "calibrate", "--text", TEXT, "--steps", STEPS, "--threshold", "0.3", "--metric", "mae", *arguments, "--json"
    )
    assert outcome.code == 0, outcome.err
    found = outcome.data
    loaded = Profile.load(places["profile"])
    assert loaded.setting.engaged("ditreducio").knobs["threshold"] == 0.3
    assert (loaded.artefact("table").layers, loaded.artefact("table").steps) == (model.info.layers, int(STEPS))
    assert 0 < found["skipped_share"] == loaded.artefact("table").skipped_share
    assert found["accepted"] <= found["trials"]
    assert loaded.evidence.metrics["ops_ratio"] == pytest.approx(found["ops_ratio"])
    assert loaded.evidence.metrics["log_mel_distance"] > 0
    assert loaded.evidence.voice == "slt"
    assert StrategyTable.from_json(json.loads(places["table"].read_text())) == loaded.artefact("table")
    assert json.loads(places["official"].read_text()) == loaded.artefact("table").to_official()
    assert "Calibration" in outcome.err


@pytest.mark.slow
def test_comparing_a_profile_with_its_baseline(paretone: Callable[..., Outcome], profile: Path, tmp_path: Path) -> None:
    outcome = paretone(
        "compare", "baseline", profile, "--text", TEXT, "--repeats", "1", "--out", tmp_path / "both", "--json"
    )
    assert outcome.code == 0, outcome.err
    found = outcome.data
    assert found["a"]["ops_ratio"] == 1.0
    assert found["b"]["ops_ratio"] < 0.8
    assert found["a"]["samples"] == found["b"]["samples"]
    assert found["log_mel_distance"] > 0
    assert {one["what"] for one in found["differences"]} == {"ditreducio"}
    for path, side in zip(found["files"], ("a", "b"), strict=True):
        assert soundfile.info(path).frames == found[side]["samples"]
    assert len(found["files"]) == 2


@pytest.mark.slow
def test_comparing_options(paretone: Callable[..., Outcome], profile: Path) -> None:
    outcome = paretone("compare", "steps=2", "steps=3,guidance=1.5", "--text", TEXT, "--repeats", "1")
    assert outcome.code == 0, outcome.err
    assert "times as fast as A" in outcome.out
    assert "B against A: log-mel distance" in outcome.out
    assert "A and B differ in more than the technique: guidance (2 and 1.5), steps (2 and 3)." in outcome.out
    assert "RTF (s/s)" in outcome.out
    assert "TTFA (s)" in outcome.out
    refused = paretone("compare", "baseline", f"steps=8,table={profile}", "--text", TEXT)
    assert refused.code == 6


@pytest.mark.slow
def test_comparing_several_texts_gives_medians(paretone: Callable[..., Outcome], tmp_path: Path) -> None:
    sentences = ("Rice.", "Glue the sheet.", workload("These days a chicken leg is rare.", "Tea."))
    (tmp_path / "texts.txt").write_text("\n".join((*sentences, "", "")), encoding="utf-8")
    sides = workload(("steps=2", "steps=4"), ("steps=1", "steps=2"))
    arguments = ("compare", *sides, "--text-file", tmp_path / "texts.txt", "--repeats", "1")
    outcome = paretone(*arguments, "--out", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.data
    assert [one["text"] for one in found["texts"]] == list(sentences)
    for name in ("real_time_factor", "first_audio_seconds", "audio_seconds", "seconds"):
        assert found["b"][name] == np.median([one["b"][name] for one in found["texts"]])
    assert found["log_mel_distance"] == np.median([one["log_mel_distance"] for one in found["texts"]])
    assert found["speed_up"]["median"] == np.median([one["speed_up"]["median"] for one in found["texts"]])
    assert sorted(os.listdir(tmp_path / "out")) == [f"{side}-00{n}.wav" for side in "ab" for n in (1, 2, 3)]
    (tmp_path / "texts.txt").write_text("\n".join(workload(sentences, ("Rice.", "Tea."))), encoding="utf-8")
    assert "Medians over the texts:" in paretone(*arguments).out


@pytest.mark.slow
def test_calibrating_at_several_thresholds(paretone: Callable[..., Outcome], tmp_path: Path) -> None:
    arguments = [
        "calibrate",
        "--text",
        workload(TEXT, "Rice."),
        "--steps",
        workload(STEPS, "3"),
        "--no-evidence",
        "--json",
        "--table",
        tmp_path / "t.json",
    ]
    outcome = paretone(*arguments, "--thresholds", "0.1", "0.4", "0.1000001")
    assert outcome.code == 0, outcome.err
    small, large, same = outcome.data["calibrations"]
    assert sorted(os.listdir(tmp_path)) == ["t-0.1.json", "t-0.1000001.json", "t-0.4.json"]
    assert small["ops_ratio"] > large["ops_ratio"]
    assert (small["same_as"], large["same_as"], same["same_as"]) == (None, None, 0.1)
    for one in (small, large, same):
        low, high = one["exact_interval"]
        assert low < one["threshold"] <= high
        table = StrategyTable.from_json(json.loads(Path(one["table"]).read_text()))
        assert one["cells"] == {action.name: table.count(action) for action in SkipAction}
        assert f"calibrated at threshold {one['threshold']:g}" in table.origin
    alone = paretone(*arguments, "--threshold", "0.1000001")
    assert alone.data["cells"] == same["cells"]
    assert alone.data["exact_interval"] == same["exact_interval"]


@pytest.mark.slow
def test_calibrating_on_several_sentences_and_measuring_the_transfer(
    paretone: Callable[..., Outcome], tmp_path: Path
) -> None:
    places = {name: tmp_path / f"{name}.json" for name in ("profile", "table")}
    arguments = [part for name, path in places.items() for part in (f"--{name}", path)]
    texts = ["--text", "Rice.", "--voice", "slt", "--voice", "rms"]
    outcome = paretone(
        "calibrate", *texts, "--combine", "mean", "--steps", "2", "--threshold", "0.5", *arguments, "--json"
    )
    assert outcome.code == 0, outcome.err
    spoken = [(one["text"], one["voice"]) for one in outcome.data["sentences"]]
    assert spoken == [("Rice.", "slt"), ("Rice.", "rms")], "the shorter list starts over"
    assert outcome.data["combine"] == "mean"
    table = StrategyTable.from_json(json.loads(places["table"].read_text()))
    assert "on the mean error of 2 sentences" in table.origin

    unseen = ["--text", "Kick the ball.", "--voice", "rms", "--voice", "slt"]
    measured = paretone("transfer", "--profile", places["profile"], *unseen, "--json")
    assert measured.code == 0, measured.err
    report = measured.data
    assert [one["sentence"]["text"] for one in report["calibrated"]] == ["Rice."], "that of the profile's evidence"
    spoken = [(one["sentence"]["text"], one["sentence"]["voice"]) for one in report["unseen"]]
    assert spoken == [("Kick the ball.", "rms"), ("Kick the ball.", "slt")]
    assert report["table"] == table.fingerprint
    assert report["threshold"] == 0.5
    assert all(one["distance"] > 0 for one in report["unseen"])

    of_table = paretone("transfer", "--table", places["table"], "--threshold", "0.5", *unseen[:4], "--json").data
    assert of_table["unseen"] == report["unseen"][:1], "options and model are those of the table"
    assert "To compare, measure the sentences" in of_table["verdict"]
    own = ["--own-text", "Rice.", "--own-voice", "rms"]
    shown = paretone("transfer", "--table", places["table"], *unseen[:4], *own)
    assert shown.code == 0, shown.err
    for words in ("Rice.", "Kick the ball.", "skips beyond bound (%)", "its own", "ops ratio"):
        assert words in shown.out


@pytest.fixture
def calibrating(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A calibration in a process of its own that takes far longer than the test."""
    arguments = ["calibrate", "--steps", "64", "--text", TEXT * 8, "--profile", str(tmp_path / "p.json"), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "engine", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_ctrl_c_cancels_cleanly(calibrating: subprocess.Popen, tmp_path: Path) -> None:
    for line in calibrating.stderr:
        if line.startswith("Check"):
            break
    calibrating.send_signal(signal.SIGINT)
    out, err = calibrating.communicate()
    assert calibrating.returncode == 130
    assert json.loads(out) == {"error": "Cancelled.", "kind": "Cancelled", "exit_code": 130}
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == []


# --- Techniques that need no file -------------------------------------------------------------------------------------
@pytest.mark.slow
def test_techniques_are_engaged_by_name(paretone: Callable[..., Outcome], model: SpeechModel, tmp_path: Path) -> None:
    pruned = ("--technique", "steps:steps=2;spacing=uniform")
    outcome = paretone("speak", "--json", "--text", TEXT, "--out", tmp_path / "a.wav", "--steps", "4", *pruned)
    assert outcome.code == 0, outcome.err
    (entry,) = outcome.data["setting"]["techniques"]
    assert (entry["technique"], entry["knobs"]["steps"]) == ("steps", 2)
    assert outcome.data["ops_ratio"] == pytest.approx(0.5)
    refused = paretone(
        "speak", "--json", "--text", TEXT, "--out", tmp_path / "b.wav", "--technique", "guidance_free:weight=0.31"
    )
    assert refused.code == 2
    assert "no CFG-free weights for w = 0.31" in refused.err


@pytest.mark.slow
def test_a_side_of_a_comparison_names_its_techniques(paretone: Callable[..., Outcome]) -> None:
    outcome = paretone(
        "compare", "--json", "baseline", "steps=4,technique=steps:steps=2", "--text", TEXT, "--repeats", "1"
    )
    assert outcome.code == 0, outcome.err
    assert [one["what"] for one in outcome.data["differences"]] == ["steps"]
    assert outcome.data["b"]["ops_ratio"] == pytest.approx(0.5)
    assert outcome.data["a"]["ops_ratio"] == 1


@pytest.mark.slow
def test_tables_are_calibrated_for_what_else_is_engaged(
    paretone: Callable[..., Outcome], model: SpeechModel, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    outcome = paretone(
        *(
            "calibrate",
            "--json",
            "--text",
            "Oh.",
            "--profile",
            path,
            "--steps",
            "4",
            "--threshold",
            "0.5",
            "--no-evidence",
        ),
        *("--technique", "steps:steps=2;spacing=uniform"),
    )
    assert outcome.code == 0, outcome.err
    saved = Profile.load(path)
    assert saved.artefact("table").steps == 2
    assert outcome.data["ops_ratio"] <= 0.5
    saved.check(model.info, model.compatibility(saved.setting))
