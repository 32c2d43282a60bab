"""Techniques used together on a real model of a few thousand weights: what really runs is what was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import CheckpointError, SettingError
from paretone.models.base import Synthesis, Utterance
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.dit import DiT
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import sampling_grid
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.requests import Similarities
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine import small_speech
from tests.engine.small_speech import LAYERS, VOICE, make_backbone, save_cfg_free, setting

FREE = UsedTechnique("guidance_free", Values(weight=0.5))
PRUNED = UsedTechnique("steps", Values(steps=7))
NARROW = UsedTechnique("precision", Values(precision="bfloat16"))
TEXT = "One. Two."


@pytest.fixture
def model(tmp_path: Path) -> F5Speech:
    """With CFG-free weights for w = 0.5."""
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    return small_speech.load("small", str(tmp_path), "", "cpu", lambda text: None, lambda: None)


@dataclass
class Seen:
    """Inputs of the backbones."""

    times: list[np.ndarray] = field(default_factory=list)
    evaluations: list[tuple[int, int, bool, torch.dtype]] = field(default_factory=list)
    """Evaluation, branches, whether under a skip plan, and the dtype that attention computes in."""
    backbones: list[DiT] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, model: F5Speech) -> Seen:
    found = Seen()
    begin, velocity = DiT.begin, DiT.velocity

    def looking_begin(self: DiT, prompt, ids, times, guided, durations=None):
        found.times.append(times)
        return begin(self, prompt, ids, times, guided, durations)

    def looking_velocity(self: DiT, x, evaluation, run, plans=None, memory=None, probe=None):
        dtype = self.block(0).attention.inputs[0].weight.dtype
        found.evaluations.append((evaluation, run.branches, plans is not None, dtype))
        found.backbones.append(self)
        return velocity(self, x, evaluation, run, plans, memory, probe)

    monkeypatch.setattr(DiT, "begin", looking_begin)
    monkeypatch.setattr(DiT, "velocity", looking_velocity)
    return found


def plain(**options: object) -> Setting:
    return setting(**{"steps": 32, "spacing": "epss", "sway": -1.0, "guidance": 2.0, **options})


def using(of: Setting, *entries: UsedTechnique) -> Setting:
    for one in entries:
        of = of.with_technique(one)
    return of


def with_table(model: F5Speech, of: Setting) -> tuple[Setting, StrategyTable]:
    """``of`` with a table that repeats every other step in the upper layers."""
    compatibility = compatibility_of(model.info, of)
    row = tuple(SkipAction.TS if step % 2 else SkipAction.NONE for step in range(compatibility.steps))
    table = StrategyTable(compatibility, ((SkipAction.NONE,) * compatibility.steps, *(row,) * (LAYERS - 1)))
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


def speak(model: F5Speech, of: Setting, *tables: StrategyTable) -> Synthesis:
    make_ready(model, of)
    return synthesise(model, TEXT, VOICE, of, tables)


def test_everything_uses_together(model: F5Speech, seen: Seen) -> None:
    of, table = with_table(model, using(plain(), FREE, PRUNED, NARROW))
    make_ready(model, of)
    seen.times.clear()
    seen.evaluations.clear()
    synthesis = synthesise(model, TEXT, VOICE, of, (table,))
    assert seen.evaluations == [(step, 1, True, torch.bfloat16) for step in range(7)] * 2
    assert all(np.array_equal(times, sampling_grid(7, "epss", -1.0)[:-1]) for times in seen.times)
    measured = synthesis.measurements
    assert measured.evaluations == 14
    assert [len(one) for one in synthesis.trace.step_seconds] == [7, 7]
    one_branch, two_branches = (
        model.operations(scripted(model, TEXT, VOICE, one, prepared=False)) for one in (of, plain())
    )
    saved = 7 * one_branch.evaluation / (32 * two_branches.evaluation)
    assert measured.ops_ratio == pytest.approx(saved * table.ops_ratio(one_branch))
    assert np.isfinite(synthesis.samples).all()


def test_the_weights_that_run_are_those_that_were_trained(model: F5Speech, seen: Seen) -> None:
    speak(model, using(plain(steps=2), FREE))
    trained, own = make_backbone(2), make_backbone(1)
    used = seen.backbones[-1]
    assert torch.equal(used.proj_out.weight, trained.proj_out.weight)
    speak(model, plain(steps=2))
    assert torch.equal(seen.backbones[-1].proj_out.weight, own.proj_out.weight)


def test_each_technique_alone_changes_what_it_says(model: F5Speech, seen: Seen) -> None:
    def ran(*entries: UsedTechnique) -> list[tuple[int, int, bool, torch.dtype]]:
        make_ready(model, using(plain(steps=3), *entries))
        seen.evaluations.clear()
        synthesise(model, "One.", VOICE, using(plain(steps=3), *entries))
        return seen.evaluations

    assert ran() == [(step, 2, False, torch.float32) for step in range(3)]
    assert ran(FREE) == [(step, 1, False, torch.float32) for step in range(3)]
    assert ran(NARROW) == [(step, 2, False, torch.bfloat16) for step in range(3)]
    assert ran(PRUNED) == [(step, 2, False, torch.float32) for step in range(7)]


def test_the_baseline_is_not_touched_by_what_was_used_before(model: F5Speech) -> None:
    before = speak(model, plain(steps=4)).samples
    narrow = speak(model, using(plain(steps=4), NARROW)).samples
    free = speak(model, using(plain(steps=4), FREE)).samples
    assert np.array_equal(speak(model, plain(steps=4)).samples, before)
    assert not np.array_equal(narrow, before)
    assert not np.array_equal(free, before)
    assert np.corrcoef(narrow, before)[0, 1] > 0.99, "fewer bits are close to all of them"


def test_what_was_prepared_is_kept_but_not_without_bound(model: F5Speech, seen: Seen, tmp_path: Path) -> None:
    of = using(plain(steps=1), FREE)
    speak(model, of)
    prepared = seen.backbones[-1]
    speak(model, of)
    assert seen.backbones[-1] is prepared, "made once"
    for number in range(5):
        save_cfg_free(tmp_path / f"{number}.safetensors", 0.6 + number / 20)
    again = small_speech.load("small", str(tmp_path), "", "cpu", lambda text: None, lambda: None)
    for number in range(5):
        speak(again, using(plain(steps=1), UsedTechnique("guidance_free", Values(weight=0.6 + number / 20))))
    assert len(again._backbones) == 4


def test_calibration_is_for_what_runs(model: F5Speech) -> None:
    class Trials(Observer):
        steps = 0

        def report(self, name: str, value: object) -> None:
            if isinstance(value, Similarities):
                self.steps = value.values.shape[1]

    of = using(plain(), FREE, PRUNED, NARROW, UsedTechnique("ditreducio", Values(threshold=0.5)))
    observer = Trials()
    record = calibrate_model(model, [Utterance("One.", VOICE)], of, observer)
    assert observer.steps == record.table.steps == 7
    assert record.table.compatibility == compatibility_of(model.info, of)
    assert record.table.compatibility.fingerprint == model.info.weight_sets[0].fingerprint
    assert record.table.count(SkipAction.BS) == 0, "one branch has none to skip"
    used = of.with_technique(UsedTechnique("ditreducio", Values(threshold=0.5), record.table.fingerprint))
    assert speak(model, used, record.table).measurements.ops_ratio < 7 / 64


def test_attention_is_captured_in_what_runs(model: F5Speech) -> None:
    of = using(plain(), FREE, PRUNED, NARROW)
    capture = model.capture_attention(scripted(model, TEXT, VOICE, of), 1, 6)
    assert capture.maps.shape[0] == 1
    assert capture.maps.dtype == np.float32
    with pytest.raises(SettingError, match="the grid 7 steps"):
        model.capture_attention(scripted(model, TEXT, VOICE, of), 1, 7)


def test_takes_say_what_they_are_not(model: F5Speech) -> None:
    assert speak(model, plain(steps=1)).notes == ("Read by the test.",)
    assert "trained to speak without guidance are another matter" in speak(model, plain(steps=1, guidance=0.0)).notes[0]
    nine = using(plain(), UsedTechnique("steps", Values(steps=9)))
    assert "evenly spaced" in speak(model, nine).notes[0]


def test_weights_that_vanished_are_named(model: F5Speech, tmp_path: Path) -> None:
    (tmp_path / "half.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"half\.safetensors is missing"):
        speak(model, using(plain(steps=1), FREE))


def test_weights_that_have_come_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    model = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)
    with pytest.raises(SettingError, match="none yet"):
        speak(model, using(plain(steps=1), FREE))
    place = tmp_path / "models" / "small" / "cfg_free"
    place.mkdir(parents=True)
    save_cfg_free(place / "trained.safetensors", 0.5)
    info = model.look_for_weights()
    assert [one.weight for one in info.weight_sets] == [0.5]
    assert model.info is info
    assert speak(model, using(plain(steps=1, guidance=1.0), FREE)).notes == ("Read by the test.",)
