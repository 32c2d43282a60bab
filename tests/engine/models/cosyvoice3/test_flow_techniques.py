"""Techniques on the flow of CosyVoice 3, whose small release speaks noise, but through every real part."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, ProfileError, SettingError
from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.measure.roofline.report import RooflineReport
from paretone.models import catalogue, load_model
from paretone.models.base import Synthesis, Utterance
from paretone.models.cosyvoice2.adapter import CosySpeech
from paretone.models.cosyvoice2.mel_flow import PlannedMel
from paretone.models.cosyvoice2.model import FLOW
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenFlow
from paretone.models.cosyvoice2.token_to_mel import TokenToMel as TokenToMel2
from paretone.models.cosyvoice3.config import NAME
from paretone.models.cosyvoice3.flow import TokenToMel
from paretone.models.files.checkpoints import fingerprint, metadata_of, read_float_weights
from paretone.observer import SILENT, Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Values
from paretone.setting.plan import flow_of
from paretone.setting.profile import Profile
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.techniques import compatibility_of, conflict, resolve
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.guidance_free import METHODS, GuidanceFreeRequest
from paretone.techniques.guidance_free.recipe import fine_tune, options_of
from paretone.techniques.registry import applying_to
from paretone.techniques.searched_grid.searching import search_grid
from paretone.training.cosyvoice_flow import CosyClip, CosySubject
from paretone.training.flow_matching import FlowMatchingOptions
from paretone.training.requests import Follower
from paretone.training.session import Intervals
from paretone.views import compute_view
from paretone.views.view import Task
from tests.engine import recorder
from tests.engine.command_line import Console
from tests.engine.models import official
from tests.engine.models.cosyvoice2.small_release import FLOW as FLOW_2
from tests.engine.models.cosyvoice2.small_release import SPEAKER_WIDTH
from tests.engine.models.cosyvoice2.small_release import write_release as write_release_2
from tests.engine.models.cosyvoice3.small_release import FLOW as FLOW_3
from tests.engine.models.f5 import plain_dit
from tests.engine.models.official import load, used
from tests.packages import needs

pytestmark = needs("onnx", "onnxruntime", "tokenizers")
TEXT = "Rain comes tomorrow."
LAYERS, STEPS = 2, 10
CLOSE = 2e-3
"""Of frames, whose values reach 18; rounding grows over ten steps."""
NONE, TS, BS = SkipAction.NONE, SkipAction.TS, SkipAction.BS


VOICE = catalogue.voices("CosyVoice2-0.5B")[0]
setting = partial(official.setting, NAME)


def mel(model: CosySpeech, of: Setting, *artefacts: Artefact) -> np.ndarray:
    return speak(model, of, *artefacts).trace.drawn_mel


def speak(model: CosySpeech, of: Setting, *artefacts: Artefact) -> Synthesis:
    return synthesise(model, TEXT, VOICE, of, artefacts)


def table_of(model: CosySpeech, rows: tuple[tuple[SkipAction, ...], ...]) -> StrategyTable:
    return StrategyTable(compatibility_of(model.info, setting(), of_flow=True), rows)


def skipping(table: StrategyTable, **options: object) -> Setting:
    return setting(UsedTechnique("ditreducio", Values(), table.fingerprint), **options)


@contextmanager
def counted(model: CosySpeech) -> Iterator[list[tuple[int, int]]]:
    """Rows and frames of every call of the last layer's feed-forward."""
    calls: list[tuple[int, int]] = []
    last = model.flow.estimator.transformer_blocks[-1].ff
    hook = last.register_forward_hook(lambda module, given, output: calls.append(tuple(output.shape[:2])))
    yield calls
    hook.remove()


def test_the_flow_is_a_model_of_its_own_to_techniques(model: CosySpeech) -> None:
    names = {one.name for one in applying_to("language", model.info.knobs, model.info.mel_flow)}
    expected = {"steps", "multistep", "guidance_interval", "saturating_guidance", "guidance_free", "average_velocity"}
    caches = {"ditreducio", "first_block", "dual_block_cache", "error_curve"}
    assert names >= expected | caches | {"searched_grid", "speculative"} and "separate_guidance" not in names
    flow = model.info.of_flow
    assert (flow.layers, flow.title) == (LAYERS, "CosyVoice 3's flow") and flow.fingerprint != model.info.fingerprint
    few = resolve(model.info, setting(used("steps", steps=5), used("guidance_interval", steps=2)))
    assert few.options == few.reference and few.flow.options["steps"] == 5 and few.flow.guidance.steps == 2
    assert "no fewer" in resolve(model.info, setting(used("steps", steps=12))).notes[0]


@pytest.mark.parametrize(
    "technique",
    [
        used("first_block", threshold=0.0),
        used("dual_block_cache", residual_diff_threshold=0.0),
        used("error_curve", threshold=0.0),
        used("steps", steps=10, spacing="uniform"),
        used("guidance_interval", steps=10),
    ],
    ids=lambda one: one.technique,
)
def test_what_skips_nothing_changes_no_bit(model: CosySpeech, technique: UsedTechnique) -> None:
    said = speak(model, setting(technique, stream=False))
    assert np.array_equal(said.samples, speak(model, setting(stream=False)).samples)
    assert any("Nothing" in note for note in said.notes), said.notes


@pytest.mark.parametrize(
    ("technique", "full"),
    [
        (used("first_block", threshold=20.0), STEPS),
        (used("dual_block_cache", residual_diff_threshold=1.0, max_warmup_steps=2), STEPS),
        (used("error_curve", threshold=20.0), STEPS),
        (used("steps", steps=5), 6),
        (used("guidance_interval", steps=2), STEPS + 1),
    ],
    ids=lambda one: getattr(one, "technique", ""),
)
def test_what_skips_computes_less_and_sounds_otherwise(model: CosySpeech, technique: UsedTechnique, full: int) -> None:
    make_ready(model, setting(technique), VOICE)
    plain = mel(model, setting(stream=False))
    with counted(model) as calls:
        said = speak(model, setting(technique, stream=False))
    assert 0 < len(calls) < full or {rows for rows, _ in calls} == {1, 2}
    assert said.trace.drawn_mel.shape == plain.shape and np.abs(said.trace.drawn_mel - plain).max() > 1e-3
    assert not any(note.startswith("Nothing") for note in said.notes)


def test_a_table_of_nothing_changes_no_bit_and_skips_are_the_same_in_a_stream(model: CosySpeech) -> None:
    nothing = table_of(model, ((NONE,) * STEPS,) * LAYERS)
    plain = mel(model, setting(stream=False))
    assert np.array_equal(mel(model, skipping(nothing, stream=False), nothing), plain)
    table = table_of(model, ((NONE, TS, NONE, BS, TS, BS, NONE, TS, TS, NONE), (NONE, BS, BS, TS, NONE, TS, *[BS] * 4)))
    whole = mel(model, skipping(table, stream=False), table)
    with counted(model) as calls:
        streamed = speak(model, skipping(table), table)
    parts = {frames for _, frames in calls}
    assert len(parts) > 1 and len(calls) % 8 == 0, "two of ten are reused in each part"
    assert sum(rows == 1 for rows, _ in calls) == 3 * sum(rows == 2 for rows, _ in calls), "six of eight in one branch"
    np.testing.assert_allclose(streamed.trace.drawn_mel, whole, atol=CLOSE)
    assert np.abs(whole - plain).max() > 1e-3
    operations = model.operations(scripted(model, TEXT, VOICE, setting()))
    ratio = flow_of(resolve(model.info, skipping(table), (table,))).ops_ratio(operations)
    assert ratio == pytest.approx(table.ops_ratio(operations)) and 0.4 < ratio < 0.8

    def saved(of: Setting, *artefacts: Artefact) -> float:
        return 1 - speak(model, of, *artefacts).measurements.ops_ratio

    assert saved(setting()) == 0 < saved(skipping(table), table) < 1 - ratio, "tokens count too"
    halved = saved(setting(used("steps", steps=5), stream=False))
    assert saved(skipping(table, stream=False), table) == pytest.approx((1 - ratio) / 0.5 * halved)


@pytest.mark.parametrize("flow", [TokenToMel(FLOW_3), TokenToMel2(FLOW_2)], ids=["3", "2"])
def test_operations_of_an_evaluation_are_those_of_the_matrix_products(flow: TokenFlow) -> None:
    planned, frames = PlannedMel(flow.eval().requires_grad_(False)), 24
    prompt = AcousticPrompt(torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 8, 80), torch.ones(1, SPEAKER_WIDTH))
    script = planned.planned()
    part = planned.whole(prompt, [1] * 8, script)
    run = planned.begin(flow.estimator, part, prompt, script.times[:-1], script.options)
    noise = planned.sampler(part, script.times, script.seed, script.options).noise
    spent = plain_dit.counted(lambda: flow.estimator.velocity(noise, 0, run))
    assert flow.estimator.operations(frames, 2).evaluation == pytest.approx(spent, rel=1e-6)
    later = flow.estimator.operations(10, 2, before=14).evaluation + flow.estimator.operations(14, 2).evaluation
    assert 0.5 < later / flow.estimator.operations(frames, 2).evaluation < 1, "earlier frames see no later ones"


def test_multistep_and_guidance_that_saturates(model: CosySpeech) -> None:
    plain = mel(model, setting())
    np.testing.assert_allclose(mel(model, setting(stream=False)), plain, atol=CLOSE)
    solved = setting(used("multistep", method="ab2"))
    np.testing.assert_allclose(
        mel(model, solved), mel(model, replace(solved, options=setting(stream=False).options)), atol=CLOSE
    )
    assert np.abs(mel(model, solved) - plain).max() > 1e-3
    saturated = resolve(model.info, setting(used("saturating_guidance", threshold=2.0)))
    assert saturated.reference["stream"] and not saturated.options["stream"] and "at the end" in saturated.notes[0]
    with counted(model) as calls:
        speak(model, setting(used("saturating_guidance", threshold=2.0)))
    assert {rows for rows, _ in calls} == {1, 2} and len(calls) == STEPS


def test_calibration_makes_a_table_that_profiles_carry(model: CosySpeech, folder: Path, tmp_path: Path) -> None:
    asked = setting(used("ditreducio", threshold=2.0))
    record = calibrate_model(model, [Utterance("Go on.", VOICE)], asked, SILENT)
    table = record.table
    assert (table.layers, table.steps) == (LAYERS, STEPS) and table.count(TS) and record.sentences[0].prompt_frames > 0
    assert table.compatibility.fingerprint == model.info.of_flow.fingerprint
    chosen = setting(UsedTechnique("ditreducio", asked.techniques[0].knobs, table.fingerprint))
    path = tmp_path / "fast.paretone.json"
    Profile.of(chosen, model.info, (table,)).save(path)
    said = Profile.load(path).synthesise(TEXT, VOICE, device="cpu", folder=str(folder))
    np.testing.assert_allclose(said.samples, speak(model, chosen, table).samples, atol=CLOSE)
    strict = calibrate_model(model, [Utterance("Go on.", VOICE)], setting(used("ditreducio", threshold=0.0)), SILENT)
    assert not strict.table.count(TS) + strict.table.count(BS)
    other = replace(table, compatibility=replace(table.compatibility, fingerprint="e" * 64))
    with pytest.raises(ProfileError, match="belongs to checkpoint"):
        resolve(model.info, skipping(other), (other,))
    with pytest.raises(ProfileError, match="belongs to number of steps 10, but 4 is in use"):
        resolve(model.info, skipping(table, flow_steps=4), (table,))


@needs("accelerate")
@pytest.mark.parametrize("method", METHODS)
def test_guidance_is_learnt_and_one_branch_speaks(folder: Path, tmp_path: Path, method: str) -> None:
    request = GuidanceFreeRequest(
        model=NAME,
        folder=str(folder),
        work=str(tmp_path / "work"),
        export=str(folder / "cfg_free"),
        weight=0.7 / 1.7,
        method=method,
        sentences=1,
        texts=("Hello there.", "They went home."),
        steps=2,
        frames=1_200,
        device="cpu",
    )
    path = Path(fine_tune(request, options_of(request), Follower(), Intervals()).checkpoint)
    own = torch.load(folder / FLOW, weights_only=True)
    assert set(read_float_weights(path)) == {name for name in own if name.startswith("decoder.estimator.")}
    told = metadata_of(path)
    assert (told["base"], told["cfg_free"]) == (fingerprint(folder / FLOW), "true")
    model = load(NAME, folder)
    (found,) = (one for one in model.look_for_weights().weight_sets if one.fingerprint == fingerprint(path))
    assert found.equivalent_guidance == pytest.approx(0.7, rel=1e-5)
    chosen = setting(UsedTechnique("guidance_free", Values(weight=0.41), found.fingerprint), stream=False)
    assert not resolve(model.info, chosen).notes, "as the baseline is guided"
    make_ready(model, chosen)
    with counted(model) as calls:
        said = mel(model, chosen)
    assert not calls, "other weights run"
    plain = mel(model, setting(stream=False))
    alone = mel(model, setting(stream=False, flow_guidance=0.0))
    assert said.shape == plain.shape and np.abs(said - plain).max() > 1e-3
    assert np.abs(said - alone).mean() < np.abs(plain - alone).mean(), "one branch, hardly trained"
    view = Task(model, Utterance("Go on.", VOICE), setting(stream=False), Values(sentences=1), SILENT)
    curves = {one.name: one.y[0] for one in compute_view("guidance-weight", view).panels[0].curves}
    assert curves["CFG-free"] > 0 and curves["conditional branch alone"] > 0, "of the flow, guided at 0.7"
    path.unlink()


def test_conditions_are_dropped_from_whole_batches(model: CosySpeech) -> None:
    clips = [CosyClip("a", np.arange(6) % 5, np.ones((12, 80), np.float16), np.ones(SPEAKER_WIDTH, np.float32), 2)] * 4
    for drop, zero in (({"drop_both": 1.0, "drop_audio": 0.0}, 0), ({"drop_both": 0.0, "drop_audio": 1.0}, 160)):
        subject = CosySubject(model.flow, clips, clips, 100, 1, FlowMatchingOptions(**drop))
        problem = subject.next(torch.device("cpu"))
        assert problem.drops_text == (not zero) and not problem.conditions[:, zero:].any()
        assert bool(zero) == bool(problem.conditions[:, :zero].any())
        (kept,) = subject.held_out(4, torch.device("cpu"), 0.4)
        assert kept.conditions[:, 160:, :4].any() and not kept.drops_text
        assert torch.allclose(kept.times, torch.tensor(0.4))
        assert not subject.bare(kept).conditions.any()


def test_the_command_line_calibrates_and_speaks(model: CosySpeech, paretone: Console, tmp_path: Path) -> None:
    place = ("--model", NAME, "--voice", VOICE.id)
    profile, table, out = tmp_path / "p.json", tmp_path / "t.json", tmp_path / "out.wav"
    found = paretone.data(
        "calibrate", *place, "--text", "Go on.", "--threshold", "2", "--profile", profile, "--table", table, "--json"
    )
    assert found["layers"] == LAYERS and found["cells"]["TS"] and found["ops_ratio"] < 0.9
    assert found["ops_ratio_of"] == "flow"
    assert "log_mel_distance" in found["evidence"]
    said = paretone.data("speak", "--profile", profile, "--text", TEXT, "--out", out, "--json")
    assert said["setting"]["techniques"][0]["technique"] == "ditreducio" and out.is_file()
    given = ("speak", *place, "--text", TEXT, "--out", out)
    assert paretone.data(*given, "--table", table, "--json")["samples"] == said["samples"]
    assert "at the end instead of in a stream" in paretone.out(*given, "--technique", "first_block:threshold=1")


def test_calibration_and_the_flow_stop_when_asked(model: CosySpeech) -> None:
    with pytest.raises(Cancelled):
        calibrate_model(model, [Utterance("Go on.", VOICE)], setting(used("ditreducio")), recorder.Follower(61))
    script = scripted(model, TEXT, VOICE, setting(stream=False))

    class AtStep(Observer):
        def check(self) -> None:
            if len(calls) == 3:
                raise Cancelled

    with counted(model) as calls, pytest.raises(Cancelled):
        model.speak(script, AtStep())
    assert len(calls) == 3, "within one step"
    measures = resolve(model.info, setting(used("error_curve", threshold=0.7), flow_steps=9))
    with counted(model) as calls, pytest.raises(Cancelled):
        model.replanned(script, measures, AtStep())
    assert len(calls) == 3, "while it measures"


def test_times_are_searched(model: CosySpeech) -> None:
    asked = setting(used("searched_grid", evaluations=2, passes=1))
    found = search_grid(model, [Utterance("Go on.", VOICE)], asked, SILENT)
    chosen = setting(UsedTechnique("searched_grid", asked.techniques[0].knobs, found.grid.fingerprint))
    with counted(model) as calls:
        speak(model, replace(chosen, options=setting(stream=False).options), found.grid)
    assert len(calls) == 2 and found.best.value[0] <= min(one.trial.value[0] for one in found.starts)
    assert found.grid.compatibility.fingerprint == model.info.of_flow.fingerprint


def test_what_cannot_apply_says_why(model: CosySpeech, tmp_path: Path) -> None:
    both = conflict(setting(used("first_block"), used("dual_block_cache")))
    assert both is not None and "both decide about skipping" in both
    with pytest.raises(SettingError, match="calibrate first, or import one"):
        resolve(model.info, setting(used("ditreducio")))
    with pytest.raises(SettingError, match="Guidance is off"):
        resolve(model.info, setting(used("guidance_interval"), flow_guidance=0.0))
    root = tmp_path / "CosyVoice2-0.5B"
    root.mkdir()
    write_release_2(root)
    second = load_model(root.name, folder=str(root), device="cpu")
    options = catalogue.entry(root.name).options_with()
    names = {one.name for one in applying_to("language", second.info.knobs, second.info.mel_flow)}
    assert {"steps", "multistep", "guidance_interval"} <= names and not {"ditreducio", "first_block"} & names
    with pytest.raises(SettingError, match="CosyVoice 2's flow is not a diffusion transformer"):
        resolve(second.info, Setting(root.name, options, (used("first_block"),)))
    unguided = replace(second.info.mel_flow, options=second.info.mel_flow.options[:-1])
    with pytest.raises(SettingError, match="CosyVoice 2's flow has no option guidance; CFG-free needs it"):
        resolve(replace(second.info, mel_flow=unguided), Setting(root.name, options, (used("guidance_free"),)))
    plain = synthesise(second, TEXT, VOICE, Setting(root.name, options, seed=3))
    few = synthesise(second, TEXT, VOICE, Setting(root.name, options, (used("steps", steps=5),), seed=3))
    assert few.trace.drawn_mel.shape == plain.trace.drawn_mel.shape
    assert np.abs(few.trace.drawn_mel - plain.trace.drawn_mel).max() > 1e-3 and torch.is_tensor(second.flow.noise)


def test_views_of_flows_draw_the_flow_after_the_tokens(model: CosySpeech, paretone: Console) -> None:
    def task(**knobs: object) -> Task:
        return Task(model, Utterance("Go on.", VOICE), setting(), Values(knobs), SILENT)

    (similar, *_) = compute_view("temporal-redundancy", task()).panels
    assert np.shape(similar.values) == (STEPS, STEPS)
    tables = compute_view("tables", task(count=2)).panels
    assert [np.shape(one.values) for one in tables] == [(LAYERS, STEPS)] * 2
    (latencies,) = compute_view("module-latencies", task(count=2, rounds=3)).panels
    assert all(min(one.values) > 0 for one in latencies.series), "of attention, too"
    assert not vars(model.flow.estimator).keys() & {"attend"}, "nothing is timed afterwards"
    (convergence,) = compute_view("order-of-convergence", task(doublings=2)).panels
    euler = next(one for one in convergence.curves if one.name == "Euler")
    assert euler.x == (4, 8, 16) and euler.y[0] > euler.y[1] > euler.y[2] > 0
    with pytest.raises(SettingError, match="can be computed for models of the family masked"):
        compute_view("codebooks", task())
    told = paretone.out("view", "attention-maps", "--model", NAME, "--voice", VOICE.id, "--text", "Go on.")
    assert "the voice's are the first" in told.lower()


def test_the_roofline_takes_the_flow_apart(model: CosySpeech) -> None:
    def measured(of: Setting) -> RooflineReport:
        return measure_roofline(RooflineTarget(model, Utterance("Go on.", VOICE), of), SILENT, rounds=2)

    report = measured(setting(used("steps", steps=5)))
    found = {one.name: one for one in report.phases}
    assert list(found) == ["prefill", "decode", "flow-conditioning", "flow-evaluation", "flow-decoder"]
    flow = found["flow-evaluation"]
    assert flow.forwards == 5 and found["flow-decoder"].title == "Vocoder" and "2 branches" in flow.shape
    assert {"attention", "projections", "feed_forward"} <= {one.name for one in flow.components}
    assert any("a stream runs them part by part" in note for note in report.notes)
    assert not measured(setting(stream=False)).notes


def test_the_roofline_of_a_flow_of_another_kind_is_a_whole(tmp_path: Path) -> None:
    root = tmp_path / "CosyVoice2-0.5B"
    write_release_2(root)
    of = Setting(root.name, catalogue.entry(root.name).options_with(), (used("guidance_interval", steps=5),), seed=3)
    second = load_model(root.name, folder=str(root), device="cpu")
    report = measure_roofline(RooflineTarget(second, Utterance("Go on.", VOICE), of), SILENT, rounds=2)
    guided, unguided = (one for one in report.phases if one.name in ("flow-evaluation", "flow-unguided"))
    assert guided.forwards + unguided.forwards == STEPS and "1 branch " in unguided.shape
    (network,) = guided.components
    assert network.title == "Whole network" and network.work.operations > 1.5 * unguided.components[0].work.operations
