"""A technique that saved nothing in a take says so in the take's notes, with the reason; one that saved something does
not."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.models import load_model
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, voice
from paretone.models.f5.adapter import F5Speech
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.plan import NOTHING_SKIPPED
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import compatibility_of, technique, techniques
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine import small_speech, speaking
from tests.engine.small_language import write_draft, write_model
from tests.engine.small_omni_mini import write_model as write_omni_mini
from tests.engine.small_speech import LAYERS, VOICE, setting


def said(synthesis: Synthesis) -> list[str]:
    return [note for note in synthesis.notes if note.startswith(NOTHING_SKIPPED)]


@pytest.fixture(scope="module")
def model() -> F5Speech:
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)


def spoken(model: F5Speech, of: Setting, *tables: StrategyTable) -> Synthesis:
    make_ready(model, of, VOICE)
    return synthesise(model, "One. Two.", VOICE, of, tables)


def using(name: str, steps: int = 8, **knobs: object) -> Setting:
    return setting(steps, guidance=2.0).with_technique(UsedTechnique(name, Values(knobs)))


@pytest.mark.parametrize(
    ("idle", "reason", "busy"),
    [
        (
            using("dual_block_cache", 4),
            "its warm-up computes all 4 steps; lower Max warmup steps (4), or take more steps",
            using("dual_block_cache", 8, residual_diff_threshold=1.0),
        ),
        (
            using("dual_block_cache", 8, residual_diff_threshold=0.0),
            "did the first blocks change by less than the threshold of 0; raise it",
            using("dual_block_cache", 8, max_warmup_steps=1, residual_diff_threshold=1.0),
        ),
        (
            using("dual_block_cache", 8, steps_computation_mask="11111111"),
            "warm-up and steps computation mask compute all steps",
            using("dual_block_cache", 8, steps_computation_mask="11110000", steps_computation_policy="static"),
        ),
        (
            using("dual_block_cache", 8, residual_diff_threshold=1.0, max_cached_steps=0),
            "a limit of 0 cached steps allows none",
            using("dual_block_cache", 8, residual_diff_threshold=1.0, max_cached_steps=1),
        ),
        (
            using("first_block", threshold=0.0),
            "at none of 8 evaluations had the first layer's output changed by less than 0 %",
            using("first_block", threshold=20.0),
        ),
        (
            using("error_curve", threshold=0.0),
            "at none of 8 steps had the outputs of a module type changed by less than 0 %",
            using("error_curve", threshold=20.0),
        ),
        (
            using("saturating_guidance", threshold=0.0),
            "at none of 8 evaluations was the effect of guidance within the threshold of 0",
            using("saturating_guidance", threshold=2.0),
        ),
    ],
)
def test_flow_models(model: F5Speech, idle: Setting, reason: str, busy: Setting) -> None:
    whole = spoken(model, idle)
    assert whole.measurements.ops_ratio == pytest.approx(1.0)
    (note,) = said(whole)
    title = technique(idle.techniques[0].technique).title
    assert note.startswith(f"{NOTHING_SKIPPED}: {title}: ")
    assert reason in note
    saving = spoken(model, busy)
    assert saving.measurements.ops_ratio < 1
    assert not said(saving)


def test_it_is_said_of_the_one_technique_that_saved_nothing(model: F5Speech) -> None:
    """Fewer steps save, but leave a cache nothing to do."""
    both = using("dual_block_cache", 32).with_technique(UsedTechnique("steps", Values(steps=4)))
    synthesis = spoken(model, both)
    assert synthesis.measurements.ops_ratio == pytest.approx(4 / 32)
    (note,) = said(synthesis)
    assert "its warm-up computes all 4 steps" in note


def test_a_table_that_computes_everything(model: F5Speech) -> None:
    for actions, notes in (((SkipAction.NONE,) * 4, 1), ((SkipAction.NONE, *(SkipAction.TS,) * 3), 0)):
        of = setting(4, guidance=2.0)
        compatibility = compatibility_of(model.info, of)
        table = StrategyTable(compatibility, (actions,) * LAYERS)
        used = of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint))
        assert len(said(spoken(model, used, table))) == notes


@pytest.mark.parametrize("name", ["steps", "guidance_interval"])
def test_what_is_known_beforehand_is_said_beforehand(model: F5Speech, name: str) -> None:
    def of(steps: int) -> Setting:
        return setting(4, guidance=2.0).with_technique(UsedTechnique(name, Values(steps=steps)))

    synthesis = spoken(model, of(4))
    assert synthesis.measurements.ops_ratio == pytest.approx(1.0)
    assert [note for note in synthesis.notes if note.startswith("Nothing is skipped: ")]
    fewer = spoken(model, of(3))
    assert not [note for note in fewer.notes if note.startswith("Nothing is skipped: ")]


@pytest.mark.parametrize("name", ["layer_reuse", "frozen_prefix", "guidance_stride", "fewer_steps"])
def test_masked_models(tmp_path: Path, name: str) -> None:
    write_omni_mini(tmp_path / "model", layers=4)
    small = load_model("omni-mini", folder=str(tmp_path / "model"), device="cpu")

    def notes(steps: int) -> list[str]:
        own = {"fewer_steps": Values(steps=8 if steps == 1 else 2), "layer_reuse": Values(ends=1)}
        options = entry("omni-mini").options_with(steps=8 if name == "fewer_steps" else steps)
        of = Setting("omni-mini", options).with_technique(UsedTechnique(name, own.get(name, NO_VALUES)))
        made = synthesise(small, "Rice.", voice("", "omni-mini"), of)
        return [note for note in made.notes if note.startswith("Nothing ")]

    assert len(notes(1)) == 1
    assert notes(8) == []


def test_language_models(tmp_path: Path) -> None:
    """Of a draft that proposes what the model would never say, and of one that is nearly the model."""
    for number, change in enumerate((lambda weight: weight * -40.0, lambda weight: weight * 1.01)):
        root = tmp_path / str(number)
        write_model(root)
        write_draft(root, change)
        synthesis = speaking.spoken(speaking.load(root), speaking.setting(speaking.drafted()), "Go.")
        # A stop that comes at the known length is accepted of any draft, and saves nothing.
        accepted = sum(min(cycle.accepted, len(cycle.tokens)) for cycle in synthesis.trace.decoding.cycles)
        assert [("accepted none of the drafted tokens" in note) for note in said(synthesis)] == [True] * (not accepted)
        assert (accepted > 0) == (number == 1)


def test_every_technique_that_skips_while_it_runs_can_say_it() -> None:
    """The default of the slot, which plug-ins have, is for them."""
    ours = [one for one in techniques() if one.slot.partition(":")[0] == "skipping"]
    assert len(ours) >= 6
    assert all(one.idle is not None for one in ours)
