"""A technique in a package of its own works everywhere: in lists, in Setup, in studies, in profiles, in takes."""

import importlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from pytestqt.qtbot import QtBot
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import EncodecConfig, EncodecModel, LlamaConfig, LlamaForCausalLM

from paretone.errors import PlugInError, ProfileError, SettingError
from paretone.export.language import HuggingFaceSource
from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.models import catalogue, load_model
from paretone.models.base import Utterance
from paretone.models.catalogue import entry, voice
from paretone.models.families.evaluations import NO_LAYERS
from paretone.observer import SILENT
from paretone.paths import own_place
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.setting.knobs import Values
from paretone.setting.plan import Part
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.definition import parse
from paretone.studies.running import FINISHED
from paretone.studies.store import Store
from paretone.techniques import applying_to, conflict, problem, problems, registry, resolve, technique
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import NamedActs
from tests.app.conftest import MakeWindow
from tests.app.presenters import Presenter
from tests.engine import small_speech, speaking
from tests.engine.command_line import Console
from tests.engine.small_language import write_model
from tests.engine.small_speech import VOICE, setting
from tests.engine.studies.small import finished, study
from tests.plugins.conftest import HERE, forget, installed
from tests.plugins.test_tutorial import blocks, environment
from tests.plugins.writing import written

AB, MIN_P = "adams_bashforth", "min_p"
Show = Callable[[Path], None]


def stepping(steps: int = 4, **knobs: float) -> Setting:
    return setting(steps).with_technique(UsedTechnique(AB, Values(knobs)))


def model():
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)


def samples(speech, of: Setting) -> np.ndarray:
    return synthesise(speech, "One.", VOICE, of).samples


# --- Lists ------------------------------------------------------------------------------------------------------------
def test_the_command_line_lists_them(plugins: Path, console: Console) -> None:
    listed = console.out("models", "--techniques")
    assert AB in listed and "Follows the last two velocities" in listed and f"{MIN_P}:share" in listed
    assert "F5 mini" not in listed, "models are not asked for"
    names = [one["name"] for one in console.data("models", "--json")["techniques"]]
    assert names[-4:] == [AB, "entropy_bound", "guidance_rescale", MIN_P], "after ours"


def test_setup_offers_each_with_its_knobs(plugins: Path, tmp_path: Path, qtbot: QtBot) -> None:
    presenter = Presenter(tmp_path)
    panel = SetupPanel(presenter.state, LIGHT, NamedActs())
    qtbot.addWidget(panel)
    for name, model_id in ((AB, "f5-mini"), (MIN_P, "lm-mini"), ("entropy_bound", "omni-mini")):
        presenter.state.loading.load_model(model_id)
        declared, group = technique(name), panel.techniques.groups[name]
        assert group.controls.knobs == declared.knobs
        presenter.state.selection.switch("ditreducio", False)
        presenter.state.selection.switch(name, True)
        knob = declared.knobs[0].name
        presenter.state.selection.set_knob(name, knob, 0.5)
        assert presenter.state.selection.setting.technique(name).knobs == Values({knob: 0.5})
        assert presenter.state.availability.technique_problem(name) == ""


# --- Speech -----------------------------------------------------------------------------------------------------------
def test_the_step_is_second_order(plugins: Path) -> None:
    """On x' = −x, four times as many steps leave a sixteenth of the error, where Euler's leave a quarter."""

    def error(steps: int, weight: float) -> float:
        times = sampling_grid(steps, "uniform", 0.0)
        follow = Part.of("paretone_adams_bashforth:steps", weight=weight).make(times, euler_steps(times))
        state = torch.ones(1, dtype=torch.float64)
        for step in range(steps):
            state = follow(state, -state, step)
        return abs(state.item() - np.exp(-1))

    assert error(20, 1.0) / error(80, 1.0) > 12
    assert error(20, 0.0) / error(80, 0.0) < 5


def test_flow_models_speak_with_it(plugins: Path) -> None:
    speech = model()
    plain = samples(speech, setting(4))
    assert np.array_equal(samples(speech, stepping(weight=0.0)), plain), "Euler's step"
    assert not np.array_equal(samples(speech, stepping()), plain)
    assert speech.info.family == "flow" and problem(speech.info, stepping()) is None
    midpoint = replace(stepping(), model="f5-mini", options=Values(solver="midpoint"))
    assert "choose the Euler solver" in str(conflict(midpoint, AB))
    both = stepping().with_technique(UsedTechnique("ditreducio"))
    with pytest.raises(SettingError, match="do without Adams–Bashforth step"):
        resolve(speech.info, both)


def test_language_models_speak_with_it(plugins: Path, tmp_path: Path) -> None:
    """With a share of 1 only the likeliest token is left, whatever is drawn."""
    speech = speaking.load(write_model(tmp_path / "model"))
    drawn = speaking.setting(UsedTechnique(MIN_P, Values(share=1.0)), seed=2)
    first, greedy = (
        speaking.spoken(speech, one).trace.decoding.tokens for one in (drawn, speaking.setting(temperature=0.0, seed=2))
    )
    assert first and first == greedy
    assert resolve(speech.info, drawn).sampler == Part.of("paretone_min_p:MinP", share=1.0)


# --- Studies ----------------------------------------------------------------------------------------------------------
def test_a_study_sweeps_its_knob(plugins: Path, tmp_path: Path) -> None:
    chosen = study(grid={f"{AB}.weight": ["off", 0.5, 1.0]}, sentences=["One sentence."])
    assert finished(tmp_path / "s", chosen) == FINISHED
    with Store(tmp_path / "s") as store:
        assert len(list(store.takes())) == 3


# --- Profiles ---------------------------------------------------------------------------------------------------------
def test_a_profile_of_it_is_spoken_and_without_the_plug_in_says_which(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console
) -> None:
    speech = small_speech.load("f5-mini", "", "", "cpu", lambda text: None, lambda: None)
    monkeypatch.setattr("paretone.models.load_model", lambda name, **more: speech)
    path, out = tmp_path / "p.json", tmp_path / "out.wav"
    Profile.of(replace(stepping(), model="f5-mini"), speech.info).save(path)
    of = Profile.load(path).setting
    assert of.technique(AB).knobs == Values(weight=1.0)
    speak = ["speak", "--profile", path, "--text", "One.", "--out", out, "--quiet"]
    console.out(*speak)
    here = synthesise(speech, "One.", voice("", "f5-mini"), of)
    assert np.array_equal(soundfile.read(out, dtype="float32")[0], here.samples)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(plugins)])
    importlib.invalidate_caches()
    registry.registry.cache_clear()
    said = console.refusal(*speak, code=ProfileError.exit_code)
    assert "setting.techniques[0].technique: There is no technique named 'adams_bashforth'" in said
    assert "install the plug-in" in said


# --- What goes wrong --------------------------------------------------------------------------------------------------
def test_the_window_says_which_plug_in_was_left_out(
    tmp_path: Path, visible: Show, make_window: MakeWindow, qtbot: QtBot
) -> None:
    for name in ("broken", "second"):
        written(tmp_path, name, "raise RuntimeError('no luck')")
    visible(tmp_path)
    window = make_window()
    window.features["setup"].engine_starts()
    said = window.notices.banner.text
    assert said.startswith(problems()[0]) and said.endswith("1 more: Help › Check installation… lists them.")
    with qtbot.waitSignal(window.closed):
        window.close()


# --- A model ----------------------------------------------------------------------------------------------------------
FLOW, LANGUAGE = "phone-flow", "code-lm"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("models"), ("phone_flow", "code_lm"), catalogue.GROUP)


@pytest.fixture
def plugged(package: Path, visible: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both packages, found by this process, with small random weights; what they say is noise."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    visible(package)
    torch.manual_seed(0)
    own_place(FLOW).mkdir(parents=True)
    save_file(
        import_module("paretone_phone_flow_network").Velocity().state_dict(), own_place(FLOW) / "model.safetensors"
    )
    folder = own_place(LANGUAGE)
    codec = EncodecModel(
        EncodecConfig(target_bandwidths=[0.75], num_filters=4, hidden_size=16, codebook_size=32, codebook_dim=16)
    )
    codec.save_pretrained(folder / "codec")
    words = ["[UNK]", "<|speech|>", *(f"<|s_{code}|>" for code in range(32)), "<|stop|>"]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "speech.json").write_text(json.dumps({"first_code": 2, "codes": 32, "stop": 34}), encoding="utf-8")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return package


TUTORIAL = HERE.parents[1] / "resources" / "docs" / "your-own-model.md"


def test_the_tutorial_has_the_package_in_full_and_its_commands_run(tmp_path: Path) -> None:
    """Its files are those of the package, put together in order; pip installs them, and they train and speak."""
    (project,), (declared, *network, training), (printed,) = (blocks(one, TUTORIAL) for one in ("toml", "python", ""))
    files = {"pyproject.toml": project, "paretone_phone_flow.py": declared, "train.py": training}
    files["paretone_phone_flow_network.py"] = "\n\n".join(network)
    package = tmp_path / "package"
    package.mkdir()
    for name, text in files.items():
        assert text == (HERE / "phone_flow" / name).read_text(encoding="utf-8"), name
        (package / name).write_text(text, encoding="utf-8")
    python, _ = environment(tmp_path / "environment")
    variables = {**os.environ, "PARETONE_DATA": str(tmp_path / "data"), "OMP_NUM_THREADS": "1"}
    of = {"pip": [python, "-m", "pip"], "python": [python], "paretone": [python, "-m", "paretone"]}
    said = {}
    for line in printed.splitlines():
        program, *words = shlex.split(line.replace("path/to/your/folder", str(package)).replace(" 1500", " 3"))
        if program == "source":
            continue  # The environment's own Python is called instead.
        words += {"install": ["--no-index", "--no-build-isolation"], "compare": ["--repeats", "1"]}.get(words[0], [])
        shorter = ["Rice." if "round bowls" in word else word for word in words]
        done = subprocess.run([*of[program], *shorter], cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        said[words[0]] = done.stdout
    assert "phone-flow" in said["models"] and (tmp_path / "rice.wav").is_file()
    assert "times as fast as A" in said["compare"] or "slower" in said["compare"]


def test_both_are_short(package: Path) -> None:
    for name, most in (("phone_flow", 120), ("code_lm", 150)):
        lines = sum(len(one.read_text(encoding="utf-8").splitlines()) for one in package.glob(f"paretone_{name}*.py"))
        assert lines <= most


def test_they_are_in_lists_and_in_setup_and_recognise_their_folders(
    plugged: Path, tmp_path: Path, qtbot: QtBot, console: Console
) -> None:
    assert not problems()
    listed = {one["id"]: one for one in console.data("models", "--json")["models"]}
    assert [*listed][-2:] == [LANGUAGE, FLOW], "after ours"
    assert listed[FLOW]["available"] and not listed[FLOW]["downloadable"]
    state = Presenter(tmp_path / "window").state
    panel = SetupPanel(state, LIGHT, NamedActs())
    qtbot.addWidget(panel)
    choice, box = panel.model_choice, panel.model_choice.box
    for model, offered in ((FLOW, False), ("F5TTS_v1_Base", True)):
        state.selection.consider_model(model)
        choice.show_choice()
        assert choice.download.isVisibleTo(choice) == offered, "only where there is a release"
    assert box.findData(FLOW) >= 0 and box.itemText(box.findData(LANGUAGE)) == "Code LM"
    assert catalogue.recognised(own_place(LANGUAGE)).id == LANGUAGE
    names = {model: {one.name for one in applying_to(entry(model).family, entry(model).options)} for model in listed}
    assert names[FLOW] == names["F5TTS_v1_Base"] - {"multistep"} | names[FLOW] & {"multistep"}
    assert names[LANGUAGE] == names["Llasa-1B"]


def test_the_flow_model_speaks_and_techniques_of_its_family_apply(plugged: Path) -> None:
    model = load_model(FLOW, device="cpu")
    plain = Setting(FLOW, entry(FLOW).options_with(steps=3))
    spoken = synthesise(model, "Rice.", voice("", FLOW), plain)
    assert len(spoken.samples) and spoken.measurements.evaluations == 3
    assert np.array_equal(spoken.samples, synthesise(model, "Rice.", voice("", FLOW), plain).samples)
    few = plain.with_technique(UsedTechnique("steps", Values(steps=2)))
    assert synthesise(model, "Rice.", voice("", FLOW), few).measurements.evaluations == 2
    apart = plain.with_technique(UsedTechnique("separate_guidance"))
    assert len(synthesise(model, "Rice.", voice("", FLOW), apart).samples)
    skipping = plain.with_technique(UsedTechnique("first_block"))
    reasons = {name: technique(name).not_offered(model.info) for name in ("first_block", "ditreducio", "steps")}
    assert reasons["first_block"] == reasons["ditreducio"] == NO_LAYERS.format("Phone flow") and not reasons["steps"]
    with pytest.raises(SettingError, match="Phone flow is not a diffusion transformer"):
        synthesise(model, "Rice.", voice("", FLOW), skipping)
    report = measure_roofline(RooflineTarget(model, Utterance("Rice.", voice("", FLOW)), plain), SILENT, rounds=2)
    found = {one.name: one for one in report.phases}
    assert found["evaluation"].forwards == 3 and found["evaluation"].components[0].title == "Whole network"


def test_the_language_model_speaks_with_fewer_layers_and_is_exported(plugged: Path) -> None:
    model = load_model(LANGUAGE, device="cpu")
    plain = Setting(LANGUAGE, entry(LANGUAGE).options_with())
    spoken = synthesise(model, "Rice.", voice("", LANGUAGE), plain)
    assert spoken.sample_rate == 24000 and spoken.trace.decoding.tokens
    packed = plain.with_technique(UsedTechnique("weight_only", Values(anyway=True)))
    assert len(synthesise(model, "Rice.", voice("", LANGUAGE), packed).samples)
    source = HuggingFaceSource(own_place(LANGUAGE))
    assert source.base() == model.info.fingerprint and source.config.number("num_hidden_layers") == 3


def test_a_study_sweeps_it_and_another_process_speaks_its_profile(
    plugged: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = parse({"model": FLOW, "sentences": ["Rice."], "grid": {"steps.steps": [1, 2]}, "device": "cpu"})
    assert finished(tmp_path / "s", study, load=load_model) == FINISHED
    with Store(tmp_path / "s") as store:
        assert len(list(store.takes())) == 3, "with the baseline"
    model = load_model(FLOW, device="cpu")
    setting = Setting(FLOW, entry(FLOW).options_with(steps=2))
    Profile.of(setting, model.info).save(tmp_path / "p.json")
    said = ["--text", "Rice.", "--voice", "anna", "--out", str(tmp_path / "o.wav"), "--quiet"]
    path = os.pathsep.join((str(plugged), *sys.path))
    code = "import sys; from paretone.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "speak", "--profile", str(tmp_path / "p.json"), *said]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    here = synthesise(model, "Rice.", voice("anna", FLOW), setting).samples
    assert np.array_equal(soundfile.read(tmp_path / "o.wav", dtype="float32")[0], here)
    data = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    data["setting"]["options"].pop("speed")
    with pytest.raises(
        ProfileError, match=r"lacks the field 'speed'\. It may come from another version of the plug-in"
    ):
        Profile.from_json(data)
    # Results are read without it.
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(plugged)])
    importlib.invalidate_caches()
    forget()
    for action, out in (("status", []), ("export", ["--out", tmp_path / "report"])):
        console.out("study", action, tmp_path / "s", *out)
    assert "cross_fade 0.15, guidance 1, spacing" in (tmp_path / "report" / "results.csv").read_text("utf-8")


# --- What goes wrong --------------------------------------------------------------------------------------------------
DECLARED = """
from paretone.models.declaration import *
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.models.f5.config import OPTIONS

NAME = __name__.removeprefix("plugin_")


def declared(**more):
    known = dict(id=NAME, title=f"The {NAME}", summary="Is a test.", family="flow", licence="MIT")
    return Model(**{**known, "loader": f"{__name__}:load", "options": OPTIONS, **more})

"""
BROKEN = {
    "family": ("MODEL = declared(family='flwo')", "family is 'flwo', but must be one of flow, language, masked"),
    "loaderless": ("MODEL = declared(loader='load')", "loader must be 'package.module:name', not 'load'"),
    "stepless": ("MODEL = declared(options=())", "options lacks cross_fade, spacing, speed, steps, sway, which every"),
    "masked": (
        "MODEL = declared(family='masked', options=OPTIONS[:1])",
        "options lacks by_sentence, class_temperature",
    ),
    "twice": ("MODEL = declared(id='f5-mini')", "brings a model named 'f5-mini', which is there already"),
    "titled": ("MODEL = declared(id='mine', title='F5 mini')", "a model named 'F5 mini', which is there already"),
    "guided": ("MODEL = declared(guidance=TwoWeightGuidance())", "guidance does not fit its options (KeyError: 'intel"),
    "ids": ("MODEL = declared(id='my model')", "is not a Model with an id of letters"),
    "recogniser": ("MODEL = declared(recognised=lambda: 1)", "recognised must take 1 argument"),
    "raises": ("raise RuntimeError('no luck')", "it cannot be imported (RuntimeError: no luck, plugin_raises.py line"),
}


def test_a_broken_declaration_is_named_and_the_rest_goes_on(tmp_path: Path, visible: Show, console: Console) -> None:
    for name, (source, _) in BROKEN.items():
        written(tmp_path, name, f"{DECLARED}{source}\n", "model")
    written(tmp_path, "sound", f"{DECLARED}MODEL = declared(), declared(id='sound-2', title='Larger')\n", "model")
    visible(tmp_path)
    for name, (_, said) in BROKEN.items():
        found = [one for one in problems() if f"'{name}' of plugin-{name} 2.0" in one]
        assert len(found) == 1 and said in found[0], problems()
    assert {"sound", "sound-2"} <= {one.id for one in catalogue.models()} and entry("f5-mini").bundled
    for name, point in (("family", "family"), ("mine", "titled")):
        assert f"The plug-in '{point}' of plugin-{point} 2.0 " in console.refusal("models", name)
    speak = ["speak", "--model", "sound", "--text", "Rice.", "--out", tmp_path / "o.wav"]
    assert "The sound is not in" in console.refusal(*speak)


AT_USE = {
    "recognising": ("recognised=lambda folder: 1 / 0", "recognised of recognising failed (ZeroDivisionError: div"),
    "nothing": ("recognised=lambda folder: None", "recognised of nothing failed (TypeError: float() argument must"),
    "voices": ("voices=Voices(named=lambda folder: 1 / 0)", "voices.named of voices failed (ZeroDivisionError: div"),
    "triples": ("voices=Voices(named=lambda folder: ('abc',))", "voices.named of triples failed (ValueError: too"),
    "options": ("without_effect=lambda *given: None", "without_effect of options failed (TypeError: can only conc"),
}


def test_a_declarations_function_that_fails_at_use_is_named_and_the_rest_goes_on(
    plugged: Path, tmp_path: Path, visible: Show, console: Console, qtbot: QtBot
) -> None:
    for name, (source, _) in AT_USE.items():
        written(tmp_path, name, f"{DECLARED}MODEL = declared({source})\n", "model")
    visible(tmp_path)
    state = Presenter(tmp_path / "data").state
    panel = SetupPanel(state, LIGHT, NamedActs())
    qtbot.addWidget(panel)
    for name in AT_USE:
        state.selection.consider_model(name)
        panel.model_choice.show_choice()
        assert entry(name).without_effect("steps", entry(name).options_with()) == ""
        assert bool(catalogue.voices(name)) == (name not in ("voices", "triples"))
    assert catalogue.recognised(own_place(LANGUAGE)).id == LANGUAGE
    found = problems()
    for name, (_, said) in AT_USE.items():
        assert [one for one in found if said in one and f"mend the plug-in '{name}' of plugin-{name} 2.0" in one], found
    assert console.out("models", FLOW) and load_model(FLOW, device="cpu").info.id == FLOW


FAILING = {
    "raising": ("    return 1 / 0", "failed (ZeroDivisionError: division by zero, plugin_raising.py line"),
    "empty": ("    return None", "gave None, but must give a FlowSpeech, as its family is flow"),
    "looping": (
        "    from paretone_phone_flow_network import PhoneFlow, load as own\n"
        "    speech = own(request)\n"
        "    speech.decode = lambda *given: 1 / 0\n"
        "    return speech",
        "failed (ZeroDivisionError: division by zero, plugin_looping.py line",
    ),
}


def test_a_broken_loader_and_a_broken_loop_are_named(plugged: Path, tmp_path: Path, visible: Show) -> None:
    for name, (body, _) in FAILING.items():
        written(tmp_path, name, f"{DECLARED}MODEL = declared()\n\ndef load(request):\n{body}\n", "model")
    visible(tmp_path)
    for name, (_, said) in FAILING.items():
        chosen, speaker = Setting(name, entry(name).options_with(steps=1)), voice("", name)
        with pytest.raises(PlugInError) as caught:
            synthesise(load_model(name, folder=str(own_place(FLOW)), device="cpu"), "Rice.", speaker, chosen)
        assert said in str(caught.value) and f"mend the plug-in '{name}' of plugin-{name} 2.0" in str(caught.value)
    assert load_model(FLOW, device="cpu").info.id == FLOW
