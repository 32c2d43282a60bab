"""Small models of every family, measured by component."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paretone.errors import PlainError, SettingError
from paretone.measure.roofline import counts
from paretone.measure.roofline.clock import write_chrome_trace
from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.measure.roofline.report import ATTENTION, FEED_FORWARD, HEAD, JOINS, PROJECTIONS, TITLES, RooflineReport
from paretone.models import load_model
from paretone.models.base import FLOW, Utterance
from paretone.models.catalogue import entry, voice
from paretone.observer import Observer
from paretone.sampling.demasking import Guide
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from tests.engine import small_language, small_speech, speaking
from tests.engine.models.omnivoice.small_release import TEXT as OMNIVOICE_TEXT
from tests.engine.models.omnivoice.small_release import write_release
from tests.engine.small_language import write_model

CPU = torch.device("cpu")
SAID = Utterance("One sentence.", small_speech.VOICE)
LANGUAGE = Utterance(speaking.TEXT, voice("", "lm-mini"))
MASKED = Utterance(OMNIVOICE_TEXT, voice("", "OmniVoice"))


def measured(model, setting: Setting, utterance: Utterance = SAID, **more: object) -> RooflineReport:
    return measure_roofline(RooflineTarget(model, utterance, setting), Observer(), rounds=1, **more)


def small_flow(variant: str = ""):
    return small_speech.load("small", "", variant, "cpu", lambda text: None, lambda: None)


def test_a_flow_model_is_taken_apart(known_ceilings, tmp_path):
    trace = tmp_path / "trace.json"
    made = measured(small_flow(), small_speech.setting(4), trace=trace)
    assert made.ceilings == known_ceilings
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    evaluation = made.phases[1]
    by_name = {one.name: one for one in evaluation.components}
    frames, config = small_speech.PROMPT_FRAMES + 12, small_speech.CONFIG
    assert evaluation.forwards == 4
    assert by_name[ATTENTION].calls == 4 * small_speech.LAYERS
    counted_too = small_flow().backbone.operations(frames, guided=True)
    both = by_name[ATTENTION].work.operations + by_name[PROJECTIONS].work.operations
    assert both == counted_too.branches * counted_too.attention
    assert by_name[FEED_FORWARD].work.operations == counted_too.branches * counted_too.feed_forward
    assert by_name[PROJECTIONS].work == counts.projections(2 * frames, config.dim, 16, 16, 4, 4)
    assert len(evaluation.layer_launches) == small_speech.LAYERS and min(evaluation.layer_launches) > 5
    assert all(one.seconds is not None for one in evaluation.components)
    events = json.loads(trace.read_bytes())["traceEvents"]
    assert {"Evaluations", "Decoder"} <= {one["name"] for one in events}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_flat_transformer_of_e2_is_taken_apart(known_ceilings, precision):
    model, setting = small_flow("flat"), small_speech.setting(4)
    if precision != "float32":
        setting = setting.with_technique(UsedTechnique("precision", Values(precision=precision)))
    made = measured(model, setting)
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    evaluation = made.phases[1]
    by_name = {one.name: one for one in evaluation.components}
    assert list(by_name) == [name for name in TITLES if name in by_name]
    config, frames = small_speech.FLAT_CONFIG, small_speech.PROMPT_FRAMES + 12
    expected = model.backbone.operations(frames, guided=True)
    assert by_name[JOINS].calls == 4 * config.depth / 2
    assert by_name[ATTENTION].calls == 4 * config.depth
    both = by_name[ATTENTION].work.operations + by_name[PROJECTIONS].work.operations
    assert both == expected.branches * expected.attention
    assert by_name[FEED_FORWARD].work.operations == expected.branches * expected.feed_forward
    joined = 2 * expected.branches * (frames + 1) * 2 * config.dim * config.dim
    assert by_name[JOINS].work.operations == joined
    assert by_name[FEED_FORWARD].precision == precision
    first, *_, last = evaluation.layer_launches
    assert len(evaluation.layer_launches) == config.depth and last > first, "late layers join"
    assert all(one.seconds is not None for one in evaluation.components)


def test_what_is_skipped_is_not_counted(known_ceilings):
    always = UsedTechnique("first_block", Values(threshold=1.0))
    plain = measured(small_flow(), small_speech.setting(6)).phases[1]
    made = measured(small_flow(), small_speech.setting(6).with_technique(always)).phases[1]
    calls = {one.name: one.calls for one in made.components}
    assert calls[ATTENTION] < {one.name: one.calls for one in plain.components}[ATTENTION]
    assert calls[HEAD] == 6
    assert "are computed" in made.components[1].note


def test_guided_and_unguided_evaluations_are_apart(known_ceilings):
    half = UsedTechnique("guidance_interval", Values(steps=2))
    guided, unguided = measured(small_flow(), small_speech.setting(6).with_technique(half)).phases[1:3]
    assert (guided.forwards, unguided.forwards) == (2, 4)
    assert guided.components[1].work.operations == 2 * unguided.components[1].work.operations


def test_a_language_model_is_taken_apart(known_ceilings, tmp_path):
    model = speaking.load(write_model(tmp_path / "model"))
    made = measured(model, speaking.setting(), LANGUAGE)
    assert [phase.name for phase in made.phases] == ["prefill", "decode", "decoder"]
    decode = made.phases[1]
    by_name = {one.name: one for one in decode.components}
    assert list(by_name) == [name for name in TITLES if name in by_name]
    transformer = model.own.tokens.transformer
    context = int(decode.shape.rpartition(" ")[2]) - 1
    layers = sum(by_name[name].work.operations for name in (PROJECTIONS, ATTENTION, FEED_FORWARD))
    assert layers * small_language.LAYERS == transformer.config.operations(1, context)
    assert by_name[HEAD].work.operations == 2 * model.own.tokens.head.numel()
    assert len(decode.layer_launches) == small_language.LAYERS and min(decode.layer_launches) > 5


def test_drafting_and_checking_are_apart(known_ceilings, tmp_path):
    model = speaking.load(speaking.write_all(tmp_path / "model"))
    made = measured(model, speaking.setting(speaking.drafted(draft_length=3, adaptive=False)), LANGUAGE)
    phases = {phase.name: phase for phase in made.phases}
    assert phases["draft"].forwards > phases["decode"].forwards
    assert len(phases["draft"].layer_launches) == 2 < len(phases["decode"].layer_launches)
    assert phases["decode"].shape.startswith("4 tokens")


def test_what_has_no_layers_is_refused(known_ceilings):
    class Other:
        def __init__(self) -> None:
            self.info = replace(small_flow().info, family=FLOW, title="Other")

        def make_ready(self, *arguments: object) -> None: ...

        def script(self, *arguments: object) -> None: ...

    with pytest.raises(SettingError, match="Other cannot be measured by component"):
        measured(Other(), small_speech.setting(2))


def test_a_trace_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(PlainError, match="could not be written"):
        write_chrome_trace(lambda: None, tmp_path / "missing" / "trace.json", CPU)


def masked_model(tmp_path: Path, layers: int = 2):
    model = load_model("OmniVoice", folder=str(write_release(tmp_path / "model", layers=layers)), device="cpu")
    return model, Setting("OmniVoice", entry("OmniVoice").options_with(clone=False, steps=6, post_process=False))


def test_a_masked_model_is_taken_apart(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    made = measured(model, setting, MASKED)
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    phase = made.phases[1]
    by_name = {one.name: one for one in phase.components}
    works = model.internals(scripted(model, MASKED.text, MASKED.voice, setting))
    config, request = works.network.config, works.request
    # The first layer projects the canvas once for both branches, and the last one computes what is filled in only.
    most = request.operations(config, request.frames, Guide.BOTH)
    spent = sum(by_name[name].work.operations * by_name[name].calls for name in (PROJECTIONS, ATTENTION, FEED_FORWARD))
    spent = (spent + by_name[HEAD].work.operations * by_name[HEAD].calls) / phase.forwards
    assert 0.5 * most < spent < most
    assert by_name[HEAD].work.operations == 2 * request.frames * config.transformer.hidden * config.rows


def test_steps_that_keep_the_text_are_apart_and_cost_less(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    kept = setting.with_technique(UsedTechnique("frozen_prefix", Values(every=3)))
    whole, short = measured(model, kept, MASKED).phases[1:3]
    assert (whole.title, short.title) == ("Steps", "Steps, text kept")
    assert (whole.forwards, short.forwards) == (2, 4), "the first and the fourth of six"
    works = model.internals(scripted(model, MASKED.text, MASKED.voice, kept))
    prefix, frames, config = works.request.prefix, works.request.frames, works.network.config.transformer
    assert prefix > 10
    by_name = [{one.name: one.work.operations for one in phase.components} for phase in (whole, short)]
    assert by_name[0][HEAD] == by_name[1][HEAD]
    # Products of a layer are over fewer rows; the canvas attends to the text all the same.
    last, others = frames * 2, config.layers - 1
    rows = ((prefix + 2 * frames) * others + last) / (2 * frames * others + last)
    assert by_name[0][FEED_FORWARD] / by_name[1][FEED_FORWARD] == pytest.approx(rows)
    columns = 4 * config.heads * config.head_width
    assert by_name[1][ATTENTION] == pytest.approx(columns * frames * (prefix + 2 * frames))
    assert short.layer_launches and all(one.seconds is not None for one in short.components)


def test_steps_that_reuse_layers_are_apart_and_cost_less(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path, layers=4)
    reused = setting.with_technique(UsedTechnique("layer_reuse", Values(every=3, ends=1)))
    whole, short = measured(model, reused, MASKED).phases[1:3]
    assert (whole.title, short.title) == ("Steps", "Steps, layers reused")
    assert (whole.forwards, short.forwards) == (2, 4), "the first and the fourth of six"
    assert len(short.layer_launches) == 2 < len(whole.layer_launches) == model.info.layers
    made = measured(model, reused.with_technique(UsedTechnique("guidance_stride", Values(every=2))), MASKED)
    # Both branches at steps 0, 2 and 4, all layers at 0 and 3, and at 4, for which 3 found nothing of the other branch.
    assert {phase.title: phase.forwards for phase in made.phases[1:-1]} == {
        "Guided steps": 2,
        "Guided steps, layers reused": 1,
        "Steps with reused guidance": 1,
        "Steps with reused guidance, layers reused": 2,
    }


def test_blocks_say_which_of_them_was_measured(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    knobs = Values(block=16, first_block=16, first_steps=2, later_steps=4, look_ahead=16)
    utterance = Utterance(" ".join([OMNIVOICE_TEXT] * 3), voice("", "OmniVoice"))
    blocks = setting.with_technique(UsedTechnique("blockwise", knobs)).with_technique(UsedTechnique("frozen_prefix"))
    made = measured(model, blocks, utterance)
    count = len(model.internals(scripted(model, utterance.text, utterance.voice, blocks)).blocks)
    steps = 2 + 4 * (count - 1)
    (note,) = (one for one in made.notes if "were measured on block" in one)
    assert note.startswith(f"All {steps} steps, the most that each may take, were measured on block {count // 2 + 1}")
    whole, short = made.phases[1:3]
    assert (whole.forwards, short.forwards) == (count, steps - count), "each block begins with a whole step"
    assert not any("were measured on block" in one for one in measured(model, setting, utterance).notes)
