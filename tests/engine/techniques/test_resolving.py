"""Settings are resolved to plans, and techniques that skip nothing change nothing."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.checks.beforehand import COLLAPSES
from paretone.errors import ProfileError, SettingError
from paretone.models import load_model
from paretone.models.base import DraftWeights, ModelInfo, OperationCounts, StudentWeights, Synthesis, WeightSet
from paretone.models.catalogue import entry, voice
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.config import OPTIONS as F5_OPTIONS
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.sampling.actions import SkipAction
from paretone.sampling.guidance import STRENGTH, TwoWeightGuidance
from paretone.setting.knobs import NO_VALUES, Values, checked, defaults
from paretone.setting.plan import NOTHING_SKIPPED
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import compatibility_of, guidance_free, problem, resolve, spade, speculative, steps, technique
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.error_curve import ErrorCurve
from paretone.techniques.resolving import remarks as remarks_of
from paretone.techniques.steps import TECHNIQUE
from paretone.techniques.trained import fitting, named
from tests.engine import small_speech, speaking
from tests.engine.known_model import FLOW, LANGUAGE
from tests.engine.small_language import write_draft, write_model
from tests.engine.small_omni_mini import write_model as write_omni_mini
from tests.engine.small_speech import VOICE
from tests.engine.small_speech import setting as used_setting
from tests.workload import workload

LAYERS = 3
HALF, TWO_THIRDS = (WeightSet(f"{w:.2f}", f"{w:.6f}"[2:] * 10, w, "model-guidance") for w in (0.5, 2 / 3))
OPERATIONS = OperationCounts(attention=3.0, feed_forward=5.0, fixed=7.0, layers=LAYERS, branches=2)
MASKED = ["layer_reuse", "frozen_prefix", "guidance_stride", "fewer_steps"]
INF = float("inf")
CACHE, FIRST = UsedTechnique("error_curve"), UsedTechnique("first_block")
DRAFT = DraftWeights("d", "d" * 64, (0, 1, 3), (0, 1), True)
TWO = DraftWeights("/own/draft-2.safetensors", "abcd" * 16, (0, 1), (0, 1), True)
THREE = DraftWeights("/own/draft-3.safetensors", "abce" * 16, (0, 1, 3), (0, 1), True)
SIX = StudentWeights("/own/student-3.safetensors", "1234" * 16, (0, 1, 3), "recovered", 9.0)
BEGUN = StudentWeights("/own/student-2.safetensors", "5678" * 16, (0, 3), "minutes:1", 1.0)
COMPANIONS = replace(LANGUAGE, title="LM", drafts=(TWO, THREE), students=(SIX, BEGUN))


def info(**changes: object) -> ModelInfo:
    small = replace(FLOW, id="small", layers=LAYERS, knobs=F5_OPTIONS, precisions=("float32", "bfloat16"))
    return replace(small, **{"weight_sets": (HALF, TWO_THIRDS), **changes})


def setting(*used: UsedTechnique, **options: object) -> Setting:
    return Setting("small", Values(options), used)


def free(weight: float = 0.5, artefact: str = "") -> UsedTechnique:
    return UsedTechnique("guidance_free", Values(weight=weight), artefact)


def pruned(steps: int = 7, **knobs: object) -> UsedTechnique:
    return UsedTechnique("steps", Values(knobs, steps=steps))


def guided(steps: int) -> UsedTechnique:
    return UsedTechnique("guidance_interval", Values(steps=steps))


def with_table(of: Setting, *actions: SkipAction, model: ModelInfo | None = None) -> tuple[Setting, StrategyTable]:
    """``of`` with a table whose layers all take ``actions`` after the first step, and then compute."""
    compatibility = compatibility_of(model or info(), of)
    row = (SkipAction.NONE, *actions, *[SkipAction.NONE] * (compatibility.steps - 1 - len(actions)))
    table = StrategyTable(compatibility, (row,) * LAYERS)
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


def test_without_techniques_the_options_are_in_force() -> None:
    found = resolve(info(), setting(steps=16))
    assert found.options == found.reference and (found.options["steps"], found.options["guidance"]) == (16, 2.0)
    assert (found.weights, found.precision, found.evaluator, found.notes) == (None, "float32", None, ())
    assert found.ops_ratio(OPERATIONS) == 1


def test_techniques_compose() -> None:
    narrow = UsedTechnique("precision", Values(precision="bfloat16"))
    of, table = with_table(setting(free(), pruned(), narrow, steps=32), SkipAction.TS)
    found = resolve(info(), of, (table,))
    in_force = {name: found.options[name] for name in ("steps", "spacing", "sway", "guidance")}
    assert in_force == {"steps": 7, "spacing": "epss", "sway": -1.0, "guidance": 0.0}
    assert (found.reference["steps"], found.reference["guidance"]) == (32, 2.0)
    assert (found.weights, found.precision, dict(found.evaluator.arguments)) == (HALF, "bfloat16", {"table": table})
    assert found.compatibility.fingerprint == HALF.fingerprint
    one_branch = replace(OPERATIONS, branches=1)
    assert found.ops_ratio(OPERATIONS) == pytest.approx(7 / 64 * table.ops_ratio(one_branch))
    assert found.ops_ratio(one_branch) == found.ops_ratio(OPERATIONS)


def test_a_precision_that_the_device_lacks_is_replaced_and_that_is_said() -> None:
    found = resolve(info(), setting(UsedTechnique("precision", Values(precision="int8"))))
    assert found.precision == "float32"
    (said,) = found.notes
    assert said.startswith("cpu does not gain from int8 for Small, which uses float32")


@pytest.mark.parametrize(
    ("of", "changes", "words"),
    [
        (setting(free(0.6)), {}, r"no CFG-free weights for w = 0.60 \(it has weights for 0.50, 0.67\); train some"),
        (setting(free()), {"weight_sets": ()}, r"w = 0.50 \(it has none yet\); train some for it"),
        (setting(free(0.5, "f" * 64)), {}, "Small lacks the CFG-free weights for w = .* 'ffffffffffff' here"),
        (setting(free()), {"trained_guidance": 0.5}, "is already CFG-free"),
        (setting(free()), {"knobs": F5_OPTIONS[:3]}, "guided differently from F5-TTS"),
        (setting(pruned()), {"family": "speech LM"}, "Step pruning is not for models like Small"),
        (setting(pruned(sway=0.9, spacing="uniform", stepz=1)), {}, "Step pruning has no knob named 'stepz'"),
        (setting(UsedTechnique("ditreducio")), {}, "no strategy table yet"),
        (setting(UsedTechnique("ditreducio"), solver="midpoint"), {}, "choose the Euler solver"),
        (setting(FIRST, UsedTechnique("ditreducio")), {}, "DiTReducio and First-block cache.* both decide"),
        (setting(CACHE, FIRST), {}, "error-curve cache.* and First-block cache.* both decide"),
        (setting(CACHE, solver="midpoint"), {}, "choose the Euler solver"),
        (setting(guided(3), free()), {}, "CFG-free weights run one branch from the start"),
        (setting(guided(3), guidance=0.0), {}, "Guidance is off"),
        (setting(guided(3), UsedTechnique("ditreducio")), {}, "calibrated with guidance at all steps"),
    ],
)
def test_what_cannot_be_used_is_refused(of: Setting, changes: dict, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(**changes), of)
    assert problem(info(**changes), of) is not None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (pruned(7), "number of steps 32, but 7 is in use"),
        (pruned(32, spacing="uniform"), "step grid 'epss', but 'uniform' is in use"),
        (free(), "checkpoint '000000000000', but '500000500000' is in use"),
    ],
)
def test_a_table_of_another_trajectory_is_refused(more: UsedTechnique, words: str) -> None:
    of, table = with_table(setting(), SkipAction.TS)
    assert dict(resolve(info(), of, (table,)).evaluator.arguments) == {"table": table}
    with pytest.raises(ProfileError, match=words):
        resolve(info(), of.with_technique(more), (table,))


def test_tables_fit_depth_and_branches() -> None:
    of, table = with_table(setting(), SkipAction.TS)
    with pytest.raises(ProfileError, match="has 3 layers, but Small has 5"):
        resolve(info(layers=5), of, (table,))
    of, table = with_table(setting(free()), SkipAction.TS, SkipAction.BS)
    found = resolve(info(), of, (table,))
    assert any("3 cells of the strategy table skip branches" in note for note in found.notes)
    without = replace(table, actions=tuple((*row[:2], SkipAction.NONE, *row[3:]) for row in table.actions))
    one_branch = replace(OPERATIONS, branches=1)
    assert table.ops_ratio(one_branch) == without.ops_ratio(one_branch) < 1


def test_a_baseline_of_another_strength_than_the_weights_stand_for_is_said() -> None:
    (note,) = resolve(info(), setting(free())).notes
    assert note.startswith("The CFG-free weights equal guidance 1, but the baseline is guided by 2:")
    assert note.endswith("For a fair comparison, set it to 1.")
    assert resolve(info(), setting(free(0.67))).notes == (), "two thirds stand for 2"
    (note,) = resolve(info(), setting(free(0.67), guidance=3.0)).notes
    assert "equal guidance 2, but the baseline is guided by 3:" in note
    assert resolve(info(), setting(guidance=0.0)).notes == (COLLAPSES["no guidance"][1],)
    assert resolve(info(), setting(free(), guidance=1.0)).notes == ()


def test_a_cfg_free_checkpoint_runs_one_branch_and_takes_no_guidance() -> None:
    found = resolve(info(trained_guidance=0.5, branches=1), setting(guidance=2.0))
    assert found.options["guidance"] == found.reference["guidance"] == 0.0 and found.ops_ratio(OPERATIONS) == 1
    assert ["Guidance is ignored" in note for note in found.notes] == [True]
    assert resolve(info(trained_guidance=0.5, branches=1), setting(guidance=0.0)).notes == ()


def test_cfg_free_weights_take_guidance_on_top_in_two_branches_and_that_is_said() -> None:
    on_top = UsedTechnique("guidance_free", Values(weight=0.67, guidance=2.0))
    found = resolve(info(), setting(on_top))
    assert (found.weights, found.options["guidance"], found.branches) == (TWO_THIRDS, 2.0, 2)
    assert found.ops_ratio(OPERATIONS) == 1
    (note,) = found.notes
    assert note.startswith("Guidance 2 on top of the 2 in the CFG-free weights is guidance 8 together, in two branches")
    assert "on top of the 2.03" in remarks_of(replace(setting(on_top), model="f5-mini"))["guidance_free"][0]
    ends = guided(4)
    assert resolve(info(), setting(on_top, ends)).guidance.steps == 4, "there is guidance to end again"
    with pytest.raises(SettingError, match="run one branch from the start"):
        resolve(info(), setting(free(0.67), ends))
    already = info(trained_guidance=2 / 3, branches=1)
    found = resolve(already, setting(on_top, guidance=0.0))
    assert (found.options["guidance"], found.reference["guidance"], found.weights) == (2.0, 0.0, None)
    with pytest.raises(SettingError, match=r"w = 0.67.*this w and guidance on top"):
        resolve(already, setting(UsedTechnique("guidance_free", Values(weight=0.5, guidance=2.0))))


def knobs(**values: object) -> Values:
    return checked(TECHNIQUE.knobs, values, TECHNIQUE.title)


def remarks(options: tuple = F5_OPTIONS, given: dict | None = None, **values: object) -> str:
    return " ".join(steps.remarks(checked(options, given or {}, "a model"), knobs(**values)))


def test_grids_that_are_not_what_they_may_be_taken_for() -> None:
    assert TECHNIQUE.describe(knobs()) == "7 steps at 0 2 4 6 8 16 24 32 of 32 (EPSS), bent by a sway of −1"
    assert TECHNIQUE.describe(knobs(steps=1, sway=0.0)) == "1 step evenly spaced"
    assert remarks() == "" and "5, 6, 7, 10, 12, 16 steps only, so these 9 are evenly spaced" in remarks(steps=9)
    assert "16 steps are not evenly spaced" in remarks(steps=16)
    assert "tuned for a sway of -1, not of 0" in remarks(sway=0.0)
    assert "tuned for the Euler solver" in remarks(given={"solver": "midpoint"})
    assert "overshoot" in remarks(MEGA_OPTIONS) and remarks(MEGA_OPTIONS, {"overshoot": 0.0}) == ""


def said(synthesis: Synthesis) -> list[str]:
    return [note for note in synthesis.notes if note.startswith(NOTHING_SKIPPED)]


@pytest.fixture(scope="module")
def model() -> F5Speech:
    return small_speech.load()


def spoken(model: F5Speech, of: Setting, *tables: StrategyTable) -> Synthesis:
    make_ready(model, of, VOICE)
    return synthesise(model, "One. Two.", VOICE, of, tables)


def using(name: str, steps: int = 8, **knobs: object) -> Setting:
    return used_setting(steps, guidance=2.0).with_technique(UsedTechnique(name, Values(knobs)))


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
    assert note.startswith(f"{NOTHING_SKIPPED}: {title}: ") and reason in note
    saving = spoken(model, busy)
    assert saving.measurements.ops_ratio < 1 and not said(saving)


@pytest.mark.parametrize("name", ["steps", "guidance_interval"])
def test_what_is_known_beforehand_is_said_beforehand(model: F5Speech, name: str) -> None:
    def of(steps: int) -> Setting:
        return used_setting(4, guidance=2.0).with_technique(UsedTechnique(name, Values(steps=steps)))

    synthesis = spoken(model, of(4))
    assert synthesis.measurements.ops_ratio == pytest.approx(1.0)
    assert [note for note in synthesis.notes if note.startswith("Nothing is skipped: ")]
    fewer = spoken(model, of(3))
    assert not [note for note in fewer.notes if note.startswith("Nothing is skipped: ")]


@pytest.mark.parametrize("name", workload(MASKED, MASKED[::3]))
def test_masked_models(tmp_path: Path, name: str) -> None:
    write_omni_mini(tmp_path / "model", layers=4)
    small = load_model("omni-mini", folder=str(tmp_path / "model"), device="cpu")

    def notes(steps: int) -> list[str]:
        own = {"fewer_steps": Values(steps=8 if steps == 1 else 2), "layer_reuse": Values(ends=1)}
        options = entry("omni-mini").options_with(steps=8 if name == "fewer_steps" else steps)
        of = Setting("omni-mini", options).with_technique(UsedTechnique(name, own.get(name, NO_VALUES)))
        made = synthesise(small, "Rice.", voice("", "omni-mini"), of)
        return [note for note in made.notes if note.startswith("Nothing ")]

    assert len(notes(1)) == 1 and notes(8) == []


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


# --- Rivals of DiTReducio ---------------------------------------------------------------------------------------------
def test_a_curve_is_the_mean_of_sentences_and_gives_a_schedule() -> None:
    curve = ErrorCurve((INF, 0.1, 0.1, 0.1, 0.1), (INF, 0.3, 0.1, 0.1, 0.5))
    none, reuse = SkipAction.NONE, SkipAction.TS
    assert curve.schedule(0.25) == ((none, reuse, reuse, none, reuse), (none, none, reuse, reuse, none))
    assert curve.schedule(0.0) == ((none,) * 5,) * 2
    two = ErrorCurve((INF, 1.0), (INF, 0.0)), ErrorCurve((INF, 3.0), (INF, 1.0))
    assert ErrorCurve.mean(two) == ErrorCurve((INF, 2.0), (INF, 0.5))


def test_savings_are_foreseen_where_they_can_be() -> None:
    assert resolve(info(), setting(CACHE)).ops_ratio(OPERATIONS) is None
    assert resolve(info(), setting(FIRST)).ops_ratio(OPERATIONS) is None
    one = replace(OPERATIONS, branches=1).evaluation
    expected = (4 * OPERATIONS.evaluation + 12 * one) / (16 * OPERATIONS.evaluation)
    assert resolve(info(), setting(guided(4), steps=16)).ops_ratio(OPERATIONS) == pytest.approx(expected)
    everywhere = resolve(info(), setting(guided(16), steps=16))
    assert everywhere.ops_ratio(OPERATIONS) == 1 and "guidance at all of them" in everywhere.notes[0]


def test_one_branch_of_either_family_is_without_guidance() -> None:
    of_f5, of_mega = checked(F5_OPTIONS, {}, "F5"), checked(MEGA_OPTIONS, {}, "Mega")
    assert STRENGTH.off(of_f5)["guidance"] == 0
    mega = TwoWeightGuidance().off(of_mega)
    assert (mega["intelligibility"], mega["similarity"]) == (1, 1)
    assert [STRENGTH.branches(one) for one in (of_f5, STRENGTH.off(of_f5))] == [2, 1]
    assert [TwoWeightGuidance().branches(one) for one in (of_mega, mega)] == [3, 1]


# --- Trained weights --------------------------------------------------------------------------------------------------
LONG, SHORT, EARLY, OTHER = (
    StudentWeights(path, path * 64, layers, stage, minutes)
    for path, layers, stage, minutes in (
        ("a", (0, 3), "recovered", 18.0),
        ("b", (0, 3), "recovered", 0.6),
        ("c", (0, 3), "minutes:1", 1.0),
        ("e", (0, 1, 3), "recovered", 9.0),
    )
)


def test_weights_fit_the_knobs_and_the_named_ones_are_used() -> None:
    near, exact = (WeightSet(path, path * 64, weight, "") for path, weight in (("1", 0.67), ("2", 2 / 3)))
    info = replace(FLOW, weight_sets=(WeightSet("0", "0" * 64, 0.5, ""), near, exact))
    knobs = defaults(technique(guidance_free.NAME).knobs).replace(weight=0.667)
    assert fitting(info, guidance_free.NAME, knobs) == (exact, near)
    assert fitting(info, guidance_free.NAME, knobs.replace(weight=0.9)) == ()
    info = replace(LANGUAGE, students=(SHORT, LONG, OTHER, EARLY))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    assert fitting(info, spade.NAME, knobs) == (LONG, SHORT)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.PARTLY)) == (EARLY,)
    assert fitting(info, spade.NAME, knobs.replace(layers="0,1,3")) == (OTHER,)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.NONE)) == ()
    info = replace(LANGUAGE, students=(EARLY, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(speculative.NAME).knobs)
    assert fitting(info, speculative.NAME, knobs) == (DRAFT,)
    assert fitting(info, speculative.NAME, knobs.replace(draft="student")) == (LONG, EARLY)
    assert fitting(info, "steps", knobs) == ()
    info = replace(LANGUAGE, students=(SHORT, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    for artefact, student in (("", LONG), (SHORT.fingerprint, SHORT)):
        setting = Setting("lm-mini").with_technique(UsedTechnique(spade.NAME, knobs, artefact))
        assert resolve(info, setting).weights == student


# --- Named by people --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["draft-3", "/own/x/../draft-3.safetensors", "ABCEABCE"])
def test_weights_are_named_by_their_file_or_fingerprint(name: str) -> None:
    found = named(COMPANIONS, UsedTechnique(speculative.NAME, Values(tolerance=0.3), name))
    assert found.artefact == THREE.fingerprint
    assert found.knobs == defaults(technique(speculative.NAME).knobs).replace(tolerance=0.3, draft="layers")
    assert resolve(COMPANIONS, Setting("lm-mini").with_technique(found)).draft == THREE


def test_knobs_that_are_left_open_are_as_the_weights_want_them() -> None:
    drafting = named(COMPANIONS, UsedTechnique(speculative.NAME, Values(), "student-3"))
    assert (drafting.artefact, drafting.knobs["draft"]) == (SIX.fingerprint, "student")
    speaking = named(COMPANIONS, UsedTechnique(spade.NAME, Values(), "student-2"))
    assert (speaking.artefact, speaking.knobs["depth"], speaking.knobs["recovery"]) == (BEGUN.fingerprint, 2, "partly")
    half = WeightSet("/own/w-0.50.safetensors", "9" * 64, 0.5, "distillation")
    free = named(replace(FLOW, weight_sets=(half,)), UsedTechnique(guidance_free.NAME, Values(), "w-0.50"))
    assert (free.artefact, free.knobs["weight"]) == (half.fingerprint, 0.5)
    by_hand = named(COMPANIONS, UsedTechnique(spade.NAME, Values(layers="0,1,3"), "student-3"))
    assert (by_hand.artefact, by_hand.knobs["layers"]) == (SIX.fingerprint, "0,1,3")


@pytest.mark.parametrize(
    ("technique", "knobs", "name", "words"),
    [
        (speculative, {}, "draft-4", "no weights named 'draft-4' for SSD (speculative decoding); there are draft-2"),
        (speculative, {}, "abc", "no weights named 'abc'"),
        (spade, {}, "draft-3", "no weights named 'draft-3' for SPADE"),
        (speculative, {"draft": "student"}, "draft-3", "draft-3 does not fit draft=student; omit that"),
        (spade, {"layers": "0,1"}, "student-3", "does not fit layers=0,1"),
    ],
)
def test_what_names_no_weights_is_said(technique: object, knobs: dict[str, object], name: str, words: str) -> None:
    with pytest.raises(SettingError, match=re.escape(words)):
        named(COMPANIONS, UsedTechnique(technique.NAME, Values(knobs), name))


def test_names_that_are_there_twice_or_nowhere_are_said() -> None:
    own = replace(TWO, path="/elsewhere/draft-2.safetensors", fingerprint="ef01" * 16)
    info = replace(COMPANIONS, drafts=(own, TWO, replace(THREE, path="/copy/draft-2.safetensors")))
    listed = r"several weights named 'draft-2' .* there are draft-2 \(ef01ef01\), draft-2 \(abcdabcd\)"
    with pytest.raises(SettingError, match=listed):
        named(info, UsedTechnique(speculative.NAME, Values(), "draft-2"))
    assert named(info, UsedTechnique(speculative.NAME, Values(), "ef01")).artefact == own.fingerprint
    # Copies of the same file are the same weights.
    copied = replace(COMPANIONS, drafts=(TWO, replace(TWO, path="/copy/draft-2.safetensors")))
    assert named(copied, UsedTechnique(speculative.NAME, Values(), "draft-2")).artefact == TWO.fingerprint
    with pytest.raises(SettingError, match=r"has no weights for SPADE \(fewer layers\) yet; train some first"):
        named(replace(COMPANIONS, students=()), UsedTechnique(spade.NAME, Values(), "student-2"))
