"""Profiles for the official Triton and TensorRT-LLM recipe: its own class with our sampler, and files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.export.accounts import Account, OptionLedger
from paretone.export.copied import install, paretone_sampler
from paretone.export.programs.f5_triton import FILE, KIND, SCHEMA, TARGET, contents, options
from paretone.export.targets import Order, account, export
from paretone.models.catalogue import entry
from paretone.models.files.checkpoints import fingerprint
from paretone.observer import Observer
from paretone.sampling.flow import sampling_grid
from paretone.sampling.schedules import evaluation_times
from paretone.setting.knobs import defaults
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques.guidance_free import TECHNIQUE as CFG_FREE
from tests.engine.export.programs.scripts import profile
from tests.peers.f5_exports import small_release

MODEL = entry("F5TTS_v1_Base")


def test_the_sampler_reads_what_is_written(tmp_path: Path) -> None:
    export(profile(MODEL.id, steps=7, sway=-0.5), "f5-triton", tmp_path, Observer())
    assert (paretone_sampler.FILE, paretone_sampler.KIND, paretone_sampler.SCHEMA) == (FILE, KIND, SCHEMA)
    read = paretone_sampler.read(tmp_path / FILE)
    times = sampling_grid(7, "epss", -0.5)
    assert read["times"] == times.tolist()
    assert (read["guidance"], read["seed"], read["solver"]) == (2.0, 5, "euler")
    for solver in ("euler", "midpoint"):
        found = paretone_sampler.evaluation_times(read["times"], solver)
        assert found == pytest.approx(evaluation_times(times, solver).tolist(), abs=1e-7)
    readme = (tmp_path / "README.md").read_text()
    assert "bash run.sh 0 4 F5TTS_v1_Base" in readme and "were never run" in readme


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "other"}, "is not a profile"),
        ({"schema": 9}, "this module reads 1"),
        ({"times": [0.0]}, "is damaged"),
        ({"solver": "heun"}, "is damaged"),
    ],
)
def test_a_damaged_profile_is_refused(tmp_path: Path, change: dict, reason: str) -> None:
    export(profile(MODEL.id), "f5-triton", tmp_path, Observer())
    path = tmp_path / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(paretone_sampler.ProfileMismatch, match=reason):
        paretone_sampler.read(path)


def test_placed_times_take_the_grids_place() -> None:
    said = account(TARGET, profile(MODEL.id), guided_weights=False)
    assert "Step grid" in [line.what for line in said.honours]
    ledger = OptionLedger(MODEL, MODEL.options_with(), 0, {"times": [0.0, 0.4, 1.0]})
    options(ledger)
    assert {"Step grid", "Sway"} <= {line.what for line in ledger.lines(carried=False)}


def test_another_recipe_is_left_as_it_is(tmp_path: Path) -> None:
    for name, before, _ in install.CHANGES:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"import this\n{before}")
    (tmp_path / install.CHANGES[-1][0]).write_text("batch_size_range = [3, 4, 5]\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="another version of the recipe"):
        install.install(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_weights_of_its_own_go_with_the_profile(tmp_path: Path) -> None:
    path = small_release(tmp_path / "model", "v1")
    free = small_release(tmp_path / "model" / "cfg_free", "v1", guidance_free=True)
    used = UsedTechnique(CFG_FREE.name, defaults(CFG_FREE.knobs).replace(weight=0.5), fingerprint(free))
    # The released architecture would be too large here; a sidecar describes the small one.
    made = Profile(profile(MODEL.id).setting.with_technique(used), fingerprint(path), "small-v1")
    said = account(TARGET, replace(made, variant=MODEL.variant))
    assert said.options["guidance"] == 0
    assert any(line.what == CFG_FREE.title for line in said.honours)
    written = contents(Order(made, said, str(path.parent), Observer()))
    assert "model_cfg_free_w0.50.safetensors" in written
    assert json.loads(written[FILE])["guidance"] == 0
    assert b"run.sh 1 4" in written["README.md"]


def test_models_that_the_recipe_cannot_convert_are_refused() -> None:
    for name, reason in (
        ("f5-mini", "F5 mini is none of them"),
        ("E2TTS_Base", "is not a diffusion transformer"),
        ("megatts3-mini", "which is not a model of the recipe"),
    ):
        said = account(TARGET, profile(name))
        assert isinstance(said, Account) and reason in said.why_not
