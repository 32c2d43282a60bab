"""Exported profiles, in the official package and on their own."""

from pathlib import Path

import pytest

from paretone.errors import ProfileError
from paretone.export.copied import paretone_profile
from paretone.export.programs import f5_tts
from paretone.export.targets import export, say
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import ditreducio, precision, steps
from paretone.techniques.average_velocity import TECHNIQUE as AVERAGE_VELOCITY
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.guidance_free import TECHNIQUE as CFG_FREE
from tests import official
from tests.engine.command_line import Console
from tests.workload import workload

TOLERANCE = 1e-4
MODEL = entry("f5-mini")
WEIGHTS = MODEL.folder / "model.safetensors"


def profile(checkpoint: str = "", skips: bool = True) -> Profile:
    """Eight steps of the bundled model, every layer skipping the third step where it ``skips``."""
    setting = Setting(MODEL.id, MODEL.options_with(steps=8, guidance=2.0))
    checkpoint, variant = checkpoint or fingerprint(WEIGHTS), "f5-mini"
    if not skips:
        return Profile(setting, checkpoint, variant)
    compatibility = Compatibility.of(MODEL.id, checkpoint, variant, MODEL.options, setting.options)
    row = (SkipAction.NONE, SkipAction.NONE, SkipAction.TS, *(SkipAction.NONE,) * 5)
    table = StrategyTable(compatibility, (row,) * 8)
    used = UsedTechnique(ditreducio.TECHNIQUE.name, defaults(ditreducio.TECHNIQUE.knobs), table.fingerprint)
    return Profile(setting.with_technique(used), checkpoint, variant, (table,))


@pytest.fixture(scope="module")
def official_run() -> dict:
    """Findings of :mod:`tests.peers.f5_exports` in the official package's environment."""
    return official.run("tests.peers.f5_exports")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_official_package_gives_the_engines_mel_until_a_profile_is_removed(official_run: dict) -> None:
    assert len(official_run["differences"]) == workload(18, 7)
    assert {name: value for name, value in official_run["differences"].items() if not value < TOLERANCE} == {}
    assert len(official_run["intervals"]) == 3 and max(official_run["intervals"]) < 1e-4
    # The baseline profile is what the package does by default; all others must change what is heard.
    same = [name for name, value in official_run["changed"].items() if value < 10 * TOLERANCE]
    assert same == ["v1, baseline", "v0, baseline"]
    assert official_run["restored"], "removing a profile gives the official output back to the last bit"
    assert len(official_run["threads"]) >= 2
    assert all(official_run["threads"]), "texts are sampled in threads, each with a memory of its own"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_does_not_belong_together_is_refused_with_the_reason(official_run: dict) -> None:
    reasons = {
        "weights": "another checkpoint",
        "version": "pe_attn_head",
        "layers": "has 2 layers, the model 3",
        "table's grid": "another grid than its 7 steps",
        "package's grid": "spaces 7 steps otherwise",
        "kind": "not a profile for f5-tts",
        "no model": "not an F5-TTS",
        "twice": "remove it first",
        "duplicate_test": "starts in the middle",
    }
    assert {name for name, reason in reasons.items() if reason not in official_run["refusals"][name]} == set()
    assert official_run["refusals"]["half precision is the same checkpoint"] == ""


def test_command_writes_a_folder_that_reads_back(tmp_path: Path, console: Console) -> None:
    given, out = tmp_path / "p.json", tmp_path / "out"
    profile().save(given)
    done = console.data("export", "--target", "f5-tts", "--profile", given, "--out", out, "--json")
    assert done["files"] == ["f5_tts.json", "profile.json", "paretone_profile.py", "README.md"]
    assert Profile.load(out / "profile.json") == profile()
    read = paretone_profile.read(out)
    assert read["sampling"] == {"solver": "euler", "steps": 8, "spacing": "epss", "sway": -1.0, "guidance": 2.0}
    assert read["table"]["actions"][0][:4] == ["NONE", "NONE", "TS", "NONE"]
    assert all(one in (out / "README.md").read_text() for one in ("apply(", "one frame longer than Paretone's"))


def test_techniques_are_carried_over_as_what_they_come_to(tmp_path: Path) -> None:
    weights = min((MODEL.folder / "cfg_free").glob("*.safetensors"))
    plain = profile(skips=False)
    knobs = {one.name: Values({knob.name: knob.default for knob in one.knobs}) for one in (steps.TECHNIQUE, CFG_FREE)}
    pruned = UsedTechnique(steps.TECHNIQUE.name, knobs[steps.TECHNIQUE.name].replace(steps=7, spacing="epss"))
    free = UsedTechnique(CFG_FREE.name, knobs[CFG_FREE.name], fingerprint(weights))
    both = plain.setting.with_technique(pruned).with_technique(free)
    written = export(Profile(both, plain.checkpoint, plain.variant), "f5-tts", tmp_path, Observer())
    read = paretone_profile.read(tmp_path)
    assert (read["sampling"]["steps"], read["sampling"]["guidance"], len(read["times"])) == (7, 0, 8)
    (exported,) = (path for path in written if path.suffix == ".safetensors")
    assert read["probes"] == f5_tts.probes(read_f5_checkpoint(exported).weights), "those of the weights that run"


def test_what_cannot_be_carried_over_is_dropped_and_said(tmp_path: Path) -> None:
    plain = profile(skips=False)
    setting = plain.setting.with_technique(UsedTechnique(precision.TECHNIQUE.name, defaults(precision.TECHNIQUE.knobs)))
    given = Profile(setting, plain.checkpoint, plain.variant)
    said = say(given, f5_tts.TARGET)
    assert [one.what for one in said.drops] == ["Speed", "Cross-fade", "Quick start", "Seed", precision.TECHNIQUE.title]
    assert said.drops[-1].how == "the official package has nothing like it" and said.techniques == ()
    export(given, "f5-tts", tmp_path / "out", Observer())
    assert paretone_profile.read(tmp_path / "out")["sampling"]["steps"] == 8
    readme = (tmp_path / "out" / "README.md").read_text()
    assert f"* {precision.TECHNIQUE.title} " in readme.partition("## Dropped")[2]


def test_weights_that_the_package_cannot_run_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    plain = profile("b" * 64, skips=False)
    used = UsedTechnique(AVERAGE_VELOCITY.name, defaults(AVERAGE_VELOCITY.knobs), "c" * 64)
    given = Profile(plain.setting.with_technique(used), plain.checkpoint, plain.variant)
    with pytest.raises(ProfileError, match="needs an embedding of the interval's length"):
        export(given, "f5-tts", tmp_path / "out", Observer(), str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


def test_profile_for_another_or_no_checkpoint_is_refused(tmp_path: Path, console: Console) -> None:
    profile("a" * 64).save(tmp_path / "p.json")
    arguments = ["export", "--target", "f5-tts", "--profile", tmp_path / "p.json", "--out", tmp_path / "out"]
    assert "is for the checkpoint 'aaaaaaaaaaaa'" in console.refusal(*arguments, code=6)
    profile().save(tmp_path / "p.json")
    refused = console.refusal(*arguments, "--folder", tmp_path / "nowhere", code=6)
    assert "nowhere; download it, or give its folder" in refused
