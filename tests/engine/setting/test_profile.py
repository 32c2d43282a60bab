"""Profiles: what is written is read back, and whatever is wrong with one is named."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import AudioError, ProfileError, SettingError
from paretone.models.base import ModelInfo, WeightSet
from paretone.models.catalogue import entry
from paretone.sampling.actions import SkipAction
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import NO_VALUES, Values, defaults
from paretone.setting.profile import SCHEMA, Evidence, Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Take
from paretone.techniques import compatibility_of, ditreducio, resolve
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.known_model import FLOW
from tests.voices import FIRST, SECOND

STEPS, LAYERS = 4, 2
CHECKPOINT = "0123456789abcdef" * 4
Change = Callable[[dict], object]


def info(**changes: object) -> ModelInfo:
    known = replace(FLOW, title="F5 mini", variant="f5-mini", layers=LAYERS, knobs=entry("f5-mini").options)
    return replace(known, **{"fingerprint": CHECKPOINT, **changes})


def compatibility(**changes: object) -> Compatibility:
    values = {"model": "f5-mini", "fingerprint": CHECKPOINT, "variant": "f5-mini"}
    sampling = {"solver": "euler", "steps": STEPS, "spacing": "epss", "sway": -1.0, "guidance": 2.0}
    values |= {name: changes.pop(name) for name in values if name in changes}
    return Compatibility(**values, sampling=Values(sampling | changes))


def table() -> StrategyTable:
    return StrategyTable.computing(compatibility(), LAYERS).changed(1, 2, SkipAction.BS).changed(0, 3, SkipAction.TS)


def setting(**changes: object) -> Setting:
    used = UsedTechnique("ditreducio", defaults(ditreducio.TECHNIQUE.knobs), table().fingerprint)
    return Setting("f5-mini", entry("f5-mini").options_with(**{"steps": STEPS, "guidance": 2.0, **changes}), (used,), 7)


def evidence() -> Evidence:
    metrics = Values(real_time_factor=0.25, ops_ratio=0.5)
    return Evidence(metrics, "a machine", 7, "2026-11-21T10:00:00.000+00:00", "Héllo “δ”.", FIRST)


@pytest.fixture
def profile() -> Profile:
    return Profile.of(setting(), info(), (table(),), evidence())


@pytest.fixture
def damaged(profile: Profile, tmp_path: Path) -> Callable[[Change], str]:
    """Changes the file's content and returns what loading says about it, without the path."""

    def load(change: Change) -> str:
        data = profile.to_json()
        change(data)
        path = tmp_path / "p.json"
        path.write_text(json.dumps(data))
        with pytest.raises(ProfileError) as caught:
            Profile.load(path)
        assert str(path) in str(caught.value)
        return str(caught.value).removeprefix(f"{path}: ")

    return load


def test_what_is_saved_is_loaded(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(ProfileError, match="There is no profile"):
        Profile.load(path)
    with pytest.raises(ProfileError, match="its folder does not exist"):
        profile.save(tmp_path / "none" / "p.json")
    profile.save(path)
    assert Profile.load(path) == profile and profile.voice().id == FIRST
    assert Profile.load(path).setting.fingerprint == profile.setting.fingerprint
    assert Profile.load(path).artefacts == (table(),)
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    assert '["NONE", "NONE", "BS", "NONE"]' in lines, "each row of the table is one line"
    profile.baseline.save(path)
    assert Profile.load(path).setting.techniques == Profile.load(path).artefacts == ()
    bare = Setting("f5-mini", Values(steps=STEPS), (UsedTechnique("ditreducio", Values(), table().fingerprint),))
    whole = Profile.of(bare, info(), (table(),)).setting
    assert set(whole.options) == {knob.name for knob in entry("f5-mini").options if not knob.later}, "all are written"
    assert set(whole.techniques[0].knobs) == {knob.name for knob in ditreducio.TECHNIQUE.knobs if not knob.later}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.pop("kind"), "this is not a profile"),
        (lambda data: data.update(schema=SCHEMA + 1), "newer version"),
        (lambda data: data.update(schema="1"), "schema must be a whole number"),
        (lambda data: data.update(colour="red"), "profile has an unknown field 'colour'"),
        (lambda data: data.pop("table"), "profile lacks the field 'table'"),
        (lambda data: data.update(checkpoint=CHECKPOINT.upper()), "checkpoint must be a SHA-256"),
        (lambda data: data["setting"].update(mood="good"), "setting has an unknown field 'mood'"),
        (lambda data: data["setting"].pop("seed"), "setting lacks the field 'seed'"),
        (lambda data: data["setting"].update(model="gpt"), "There is no model named 'gpt'"),
        (lambda data: data["setting"].update(seed=-1), "setting.seed must be a whole number between 0 and 2**63 - 1"),
        (lambda data: data["setting"]["options"].update(steps=2**63), "options.steps must be a whole number of"),
        (lambda data: data["evidence"]["metrics"].update(ops_ratio=-(10**400)), "ops_ratio must be a whole number of"),
        (lambda data: data["setting"]["options"].update(steps=0), "setting.options.steps: Steps must lie between"),
        (lambda data: data["setting"]["options"].pop("sway"), "setting.options lacks the field 'sway'"),
        (lambda data: data["setting"]["techniques"][0].update(technique="magic"), "setting.techniques[0].technique"),
        (lambda data: data["setting"]["techniques"][0]["knobs"].update(metric="mse"), "techniques[0].knobs.metric"),
        (lambda data: data["setting"].update(techniques=[]), "table is there, but setting.techniques does not"),
        (lambda data: data["setting"]["techniques"].append(data["setting"]["techniques"][0]), "a technique twice"),
        (lambda data: data["setting"]["options"].update(steps=8), "sampling.steps is 4, but this profile's is 8"),
        (lambda data: data.update(table=None), "table is missing, though setting.techniques uses ditreducio"),
        (lambda data: data["table"]["actions"].pop(), "table is another one than setting.techniques names"),
        (lambda data: data["table"]["actions"][1].pop(), "has 3 steps in layer 2, but its grid has 4"),
        (lambda data: data["table"]["actions"][0].__setitem__(1, "SKIP"), "table.actions[0][1] must be NONE, TS or BS"),
        (lambda data: data["table"].update(note=""), "table has an unknown field 'note'"),
        (lambda data: data.update(setting=[]), "setting must be an object"),
        (lambda data: data["setting"].update(techniques={}), "setting.techniques must be"),
        (lambda data: data["setting"]["techniques"][0].update(artefact=3), "setting.techniques[0].artefact must be"),
        (
            lambda data: data["setting"]["techniques"][0]["knobs"].update(branch_skip="attention"),
            "table.branch_skip is 'both', but setting.techniques says 'attention'",
        ),
        (lambda data: data["evidence"].update(mood="good"), "evidence has an unknown field 'mood'"),
        (lambda data: data["evidence"]["metrics"].update(wer=True), "evidence.metrics['wer'] must be a number"),
        (lambda data: data["evidence"].pop("machine"), "evidence lacks the field 'machine'"),
        (lambda data: data["evidence"].update(date="yesterday"), "evidence.date must be an ISO 8601 date"),
    ],
)
def test_errors_name_the_field(damaged: Callable[[Change], str], change: Change, words: str) -> None:
    assert words in damaged(change)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x04\x95pickle", "is not JSON"),
        (b"[1, 2]", "this is not a profile"),
        (b'{"kind": "paretone profile", "kind": "paretone profile"}', "the field 'kind' is given twice"),
        (b'{"kind": NaN}', "kind must be a number, not nan"),
        (b"[" * 200_000, "is not JSON"),
        (b" " * (17 * 2**20), "larger than any profile"),
    ],
)
def test_files_that_are_no_profiles(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content)
    with pytest.raises(ProfileError, match=words) as caught:
        Profile.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fingerprint": "f" * 64}, "it is for checkpoint '0123456789ab', but 'ffffffffffff' is loaded"),
        ({"variant": "F5TTS_Base"}, "it is for architecture variant 'f5-mini', but 'F5TTS_Base' is loaded"),
        ({"layers": 3}, "^The strategy table has 2 layers, but F5 mini has 3"),
    ],
)
def test_other_weights_are_refused_with_the_reason(profile: Profile, changes: dict, words: str) -> None:
    profile.check(info(), compatibility())
    with pytest.raises(ProfileError, match="it belongs to number of steps 4, but 8 is in use"):
        profile.check(info(), compatibility(steps=8))
    with pytest.raises(ProfileError, match=words):
        profile.check(info(**changes), compatibility())


def test_parts_that_do_not_belong_together() -> None:
    with pytest.raises(ProfileError, match="table is missing"):
        Profile.of(setting(), info())
    with pytest.raises(ProfileError, match=r"table\.belonging\.fingerprint"):
        Profile.of(setting(), info(fingerprint="f" * 64), (table(),))
    with pytest.raises(SettingError, match="Steps must lie between"):
        Profile.of(replace(setting(), options=Values(steps=1000)), info(), (table(),))


def test_a_full_disk_leaves_the_old_profile(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile.save(path)
    before = path.read_bytes()
    code = (
        "import resource, signal, sys\n"
        "from paretone.errors import ProfileError\n"
        "from paretone.setting.profile import Profile\n"
        f"profile = Profile.load({str(path)!r})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        f"    profile.baseline.save({str(path)!r})\n"
        "except ProfileError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"The profile {path} could not be written" in done.stdout and path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.json"]
    profile.baseline.save(path)
    assert path.read_bytes() != before


def test_a_voice_that_is_not_part_of_the_profile_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    Profile.of(setting(), info(), (table(),), replace(evidence(), voice="own:/gone/me.wav")).save(path)
    loaded = Profile.load(path)
    with pytest.raises(AudioError, match=rf"me.*, which is not part of it; give a voice: .* \({FIRST}, {SECOND}"):
        loaded.voice()


WEIGHTS = WeightSet("half.safetensors", "5" * 64, 0.5, "model-guidance")
NARROW = UsedTechnique("precision", Values(precision="bfloat16"))
ACCELERATED = Setting("f5-mini", entry("f5-mini").options_with(steps=4), (NARROW,), seed=7)


def composed() -> tuple[Setting, StrategyTable]:
    """CFG-free, step pruning, precision and a table that was made for them."""
    free = UsedTechnique("guidance_free", Values(weight=0.5))
    of = replace(setting().baseline, options=entry("f5-mini").options_with(steps=32, guidance=1.0))
    of = of.with_technique(free).with_technique(NARROW).with_technique(UsedTechnique("steps", Values(steps=7)))
    made = StrategyTable.computing(compatibility_of(capable(), of), LAYERS).changed(1, 3, SkipAction.TS)
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, made.fingerprint)), made


def capable(**changes: object) -> ModelInfo:
    return info(**{"weight_sets": (WEIGHTS,), "precisions": ("float32", "bfloat16"), **changes})


def test_techniques_together_survive_the_round_trip(tmp_path: Path) -> None:
    of, made = composed()
    profile = Profile.of(of, capable(), (made,))
    assert profile.weights == WEIGHTS.fingerprint and profile.compatibility == made.compatibility
    assert profile.compatibility.sampling["steps"] == 7 and profile.compatibility.sampling["guidance"] == 0.0
    profile.save(tmp_path / "profile.json")
    again = Profile.load(tmp_path / "profile.json")
    assert again == profile
    again.check(capable(), compatibility_of(capable(), again.setting))


def test_a_profile_serves_a_device_that_lacks_its_precision_but_no_other_weights() -> None:
    of, made = composed()
    poorer = capable(precisions=("float32",))
    Profile.of(of, capable(), (made,)).check(poorer)
    said = resolve(poorer, of, prepared=False).notes[0]
    assert "does not gain from bfloat16" in said and "float32" in said
    profile = Profile.of(of, capable(), (made,))
    twin = replace(WEIGHTS, fingerprint="6" * 64)
    with pytest.raises(ProfileError, match=r"F5 mini lacks the CFG-free weights for w = .* '555555555555' here"):
        profile.check(capable(weight_sets=(twin,)))
    with pytest.raises(SettingError, match="no CFG-free weights"):
        Profile.of(of, capable(weight_sets=()), (made,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda entries: entries["guidance_free"].update(artefact=""), "artefact must be the SHA-256 of the CFG-free"),
        (lambda entries: entries["guidance_free"].update(artefact="7" * 64), "table.belonging.fingerprint is '5555"),
        (lambda entries: entries["steps"]["knobs"].update(steps=6), "sampling.steps is 7, but this profile's is 6"),
    ],
)
def test_techniques_that_do_not_belong_together_are_refused(tmp_path: Path, change: Change, words: str) -> None:
    of, made = composed()
    data = Profile.of(of, capable(), (made,)).to_json()
    change({one["technique"]: one for one in data["setting"]["techniques"]})
    with pytest.raises(ProfileError, match=words):
        Profile.from_json(data)


def test_evidence_quotes_a_take_and_its_baseline() -> None:
    def take(seconds: float, of: Setting) -> Take:
        more = {"measurements": Measurements(seconds, 2.0, 0.5, ops_ratio=0.4), "machine": "here"}
        return Take("a", "2026-11-21T10:00:00Z", "Text.", "anna", of, 24_000, np.zeros(4), **more)

    accelerated = replace(take(1.0, ACCELERATED), log_mel_distance=0.3)
    found = Evidence.of(accelerated, take(3.0, ACCELERATED.baseline))
    assert found.metrics == Values(
        first_audio_seconds=0.5, log_mel_distance=0.3, ops_ratio=0.4, real_time_factor=0.5, speed_up=3.0
    )
    assert (found.machine, found.seed, found.text, found.voice) == ("here", 7, "Text.", "anna")
    assert "speed_up" not in Evidence.of(accelerated).metrics and Evidence.from_json(found.to_json()) == found
    assert Evidence.from_json(Evidence().to_json()) == Evidence()
