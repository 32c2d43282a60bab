"""OmniVoice as a whole, and what all masked models have in common, on a small release in the official layout."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, CheckpointError, SettingError
from paretone.models.base import Synthesis, Utterance
from paretone.models.catalogue import voice
from paretone.models.families.masked import guide_of
from paretone.models.kernels.fused_masked import MaskedRun
from paretone.models.omnivoice.adapter import OmniVoiceSpeech
from paretone.models.omnivoice.front_end import StreamedPassages
from paretone.models.omnivoice.higgs import WindowedHiggs
from paretone.models.omnivoice.text import sentences
from paretone.observer import Observer
from paretone.sampling.demasking import Guide
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import DemaskingTrace
from paretone.speaking import make_ready, scripted
from paretone.techniques import resolve, technique
from paretone.views import compute_view
from paretone.views.view import Task
from tests.engine.models.official import used
from tests.engine.models.omnivoice.small_release import LONG, TEXT, load, setting, spoken, write_release
from tests.engine.recorder import Follower, collected
from tests.engine.speaking import stream
from tests.workload import workload

RATE, HOP = 24000, 960


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("omnivoice") / "model")


@pytest.fixture(scope="module")
def model(root: Path) -> OmniVoiceSpeech:
    return load(root)


def pieces_of(model: OmniVoiceSpeech, text: str, chosen: Setting) -> tuple[list[np.ndarray], Synthesis]:
    pieces, whole = collected(stream(model, text, voice(), chosen))
    return [one.samples for one in pieces], whole


def raw(model: OmniVoiceSpeech, trace: DemaskingTrace, passage: int = 0) -> np.ndarray:
    """A passage's codes decoded at once."""
    return WindowedHiggs(model.codec).whole(torch.from_numpy(trace.passages[passage].codes).long()).samples


def test_what_is_said_and_how_it_was_filled_in(model: OmniVoiceSpeech) -> None:
    synthesis = spoken(model, setting(post_process=False, layer_penalty=5.0))
    trace, measured = synthesis.trace.demasking, synthesis.measurements
    (passage,) = trace.passages
    frames = passage.codes.shape[1]
    assert (trace.frame_seconds, trace.mask) == (0.04, 64)
    assert passage.codes.shape == passage.order.shape == passage.probability.shape == (8, frames)
    assert passage.codes.max() < 64
    assert passage.codes.min() >= 0
    assert (passage.steps, measured.evaluations, passage.order.max()) == (6, 6, 5)
    assert (passage.order >= 0).all()
    assert ((passage.probability > 0) & (passage.probability <= 1)).all()
    # The penalty has first codebooks committed before deeper ones.
    assert passage.order[0].mean() < passage.order[7].mean()
    assert [(one.start, one.end, one.steps) for one in passage.blocks] == [(0, frames, 6)]
    assert measured.ops_ratio == pytest.approx(1)
    assert (measured.tokens, measured.target_passes) == (0, 0)
    # A tenth of a second of silence at both ends, speech with a peak of one half.
    assert len(synthesis.samples) == frames * HOP + 2 * 2400
    assert np.abs(synthesis.samples).max() == pytest.approx(0.5, abs=0.02)
    assert passage.start == pytest.approx(0.1)
    assert (synthesis.samples[:2400] == 0).all()


def test_a_seed_is_a_take(model: OmniVoiceSpeech) -> None:
    first, again, other = (spoken(model, setting(seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.samples, again.samples)
    assert not np.array_equal(first.trace.demasking.passages[0].codes, other.trace.demasking.passages[0].codes)


def test_a_voice_is_continued_and_encoded_once(
    model: OmniVoiceSpeech, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    fresh = load(root)
    statuses: list[str] = []
    observer = Observer()
    observer.status = statuses.append
    cloned = setting(clone=True)
    make_ready(fresh, cloned, voice(), observer=observer)
    assert "Encoding the voice …" in statuses
    request = fresh.internals(scripted(fresh, TEXT, voice(), cloned)).request
    assert request.reference.shape[0] == 8
    assert request.reference.shape[1] > 50
    assert spoken(fresh, cloned).measurements.audio_seconds > 0.2
    # Another model of the same codec finds the codes on disk.
    other = load(root)
    monkeypatch.setattr("paretone.models.omnivoice.checkpoint.OmniVoiceFolder.encoder", None)
    assert torch.equal(other.internals(scripted(other, TEXT, voice(), cloned)).request.reference, request.reference)


@pytest.mark.parametrize("ahead", workload([0, 20], [20]))
def test_blocks_are_heard_as_they_come_and_sound_as_at_once(model: OmniVoiceSpeech, ahead: int) -> None:
    steps = {"first_steps": 2, "later_steps": 3, "adaptive": False, "look_ahead": ahead, "text_every": 1}
    pieces, synthesis = pieces_of(model, LONG, setting(used("blockwise", block=16, first_block=16, **steps)))
    trace, measured = synthesis.trace.demasking, synthesis.measurements
    (passage,) = trace.passages
    frames = passage.codes.shape[1]
    assert len(passage.blocks) == len(pieces) - 1 == 1 + -(-(frames - 16) // 16)
    assert [one.steps for one in passage.blocks][:3] == [2, 3, 3]
    assert np.array_equal(np.concatenate(pieces), synthesis.samples)
    # What is heard first is what no later code can change.
    assert len(pieces[0]) == (16 - 10) * HOP - 2400
    assert 0 < measured.first_audio_seconds < measured.seconds
    whole = raw(model, trace)
    assert len(whole) == len(synthesis.samples)
    assert np.abs(whole - synthesis.samples)[2400:-2400].max() <= 1e-4 * np.abs(whole).max()
    # Nothing of a block is committed after anything of the next one.
    for one, following in zip(passage.blocks[:-1], passage.blocks[1:], strict=True):
        assert passage.order[:, one.start : one.end].max() < passage.order[:, following.start : following.end].min()
    assert any("block by block" in note for note in synthesis.notes)
    assert any("approximation" in note for note in synthesis.notes) == bool(ahead)
    assert measured.ops_ratio > 1


def test_one_block_in_as_many_steps_is_the_whole_canvas(model: OmniVoiceSpeech) -> None:
    whole = spoken(model, setting())
    plan = used("blockwise", block=250, first_block=250, first_steps=6, later_steps=6, adaptive=False, text_every=1)
    blocks = spoken(model, setting(plan))
    first, second = whole.trace.demasking.passages[0], blocks.trace.demasking.passages[0]
    assert np.array_equal(first.codes, second.codes)
    assert np.array_equal(first.order, second.order)


def test_sentences_are_heard_one_after_another(model: OmniVoiceSpeech) -> None:
    pieces, synthesis = pieces_of(model, LONG, setting(used("sentencewise")))
    assert synthesis.trace.chunk_texts == tuple(f"{one.strip()}." for one in LONG.split(".") if one)
    # Each sentence, and the silence after the last.
    assert len(pieces) == 4
    starts = [one.start for one in synthesis.trace.demasking.passages]
    assert starts == sorted(starts)
    assert synthesis.measurements.largest_gap_seconds > 0


def test_without_a_voice_the_first_chunk_is_what_the_others_continue(
    model: OmniVoiceSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    ask = OmniVoiceSpeech.request

    def seen(self: OmniVoiceSpeech, *given: object) -> object:
        asked.append(ask(self, *given))
        return asked[-1]

    monkeypatch.setattr(OmniVoiceSpeech, "request", seen)
    first = spoken(model, setting(by_sentence=True), LONG).trace.demasking.passages[0].codes
    assert asked[0].reference.shape[1] == 0
    assert all(np.array_equal(one.reference.numpy(), first) for one in asked[1:])


def test_long_texts_are_cut(model: OmniVoiceSpeech) -> None:
    options = setting().options
    prepared = model.passages(LONG * 8, voice(), model.prompt(voice(), options, lambda: None), options)
    lengths = [one.frames / 25 for one in prepared.passages]
    assert sum(lengths) > 30
    assert max(lengths) < 20


@pytest.mark.parametrize(
    ("technique", "expected"),
    [
        (used("guidance_interval", steps=2), "bb----"),
        (used("guidance_stride", every=3, between="reuse"), "b==b=="),
        (used("guidance_stride", every=2, between="leave_out"), "b-b-b-"),
    ],
)
def test_guidance_is_left_out_as_asked(
    model: OmniVoiceSpeech, technique: UsedTechnique, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs = {Guide.BOTH: "b", Guide.REUSED: "=", Guide.ALONE: "-"}
    schedule = resolve(model.info, setting(technique)).guidance
    assert "".join(signs[guide_of(schedule, step)] for step in range(6)) == expected
    rows: list[int] = []
    hidden = MaskedRun.hidden

    def counted(self: MaskedRun, codes: object, first: int, last: int, of: object) -> torch.Tensor:
        rows.append(len(of.parts))
        return hidden(self, codes, first, last, of)

    monkeypatch.setattr(MaskedRun, "hidden", counted)
    synthesis = spoken(model, setting(technique))
    assert rows == [2 if one == "b" else 1 for one in expected]
    assert synthesis.measurements.ops_ratio < 1


def test_text_and_reference_are_left_out_as_asked(model: OmniVoiceSpeech) -> None:
    synthesis = spoken(model, setting(used("frozen_prefix", every=3)))
    assert synthesis.measurements.ops_ratio < 1
    assert any("not computed at every step" in note for note in synthesis.notes)
    both = setting(used("frozen_prefix"), used("blockwise", block=16), used("guidance_stride"))
    assert len(spoken(model, both).samples) > 1000


def test_layers_in_the_middle_are_left_out_as_asked(tmp_path: Path) -> None:
    model = load(write_release(tmp_path / "deep", layers=4))
    synthesis = spoken(model, setting(used("layer_reuse", every=3, ends=1)))
    assert synthesis.measurements.ops_ratio < 1
    assert any("middle layers were not computed at every step" in note for note in synthesis.notes)
    with pytest.raises(SettingError, match="has 4 layers, so none is left to reuse where 2 at each"):
        spoken(model, setting(used("layer_reuse", ends=2)))
    with pytest.raises(SettingError, match="do without one of the two"):
        spoken(model, setting(used("layer_reuse", ends=1), used("frozen_prefix")))
    blocks = resolve(model.info, setting(used("layer_reuse", ends=1), used("blockwise", block=16)))
    assert blocks.run.target.endswith(":ReusedLayersRun")
    assert any("computed follows from: Layers reused" in note for note in blocks.notes)
    assert not any("4th step of a block" in note for note in blocks.notes)
    both = setting(used("layer_reuse", ends=1), used("blockwise", block=16), used("guidance_stride"))
    assert len(spoken(model, both).samples) > 1000


def test_blocks_compute_text_and_reference_at_their_first_step_and_every_nth(
    model: OmniVoiceSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    scores = MaskedRun.scores

    def followed(self: MaskedRun, *given: object) -> torch.Tensor:
        found = scores(self, *given)
        rows.append(self.rows_of_last(given[-1]) - 2 * self._request.frames)
        return found

    monkeypatch.setattr(MaskedRun, "scores", followed)
    knobs = {"block": 16, "first_block": 16, "first_steps": 2, "later_steps": 5, "adaptive": False}
    for look_ahead in workload((0, 16), (16,)):
        rows.clear()
        synthesis = spoken(model, setting(used("blockwise", **knobs, look_ahead=look_ahead)), LONG)
        prefix, blocks = rows[0], synthesis.trace.demasking.passages[0].blocks
        assert prefix > 10 and len(blocks) > 2
        steps = [prefix if step % 4 == 0 else 0 for block in blocks for step in range(block.steps)]
        assert rows == steps
        assert any("at the first and every 4th step of a block only" in note for note in synthesis.notes)
    every = spoken(model, setting(used("blockwise", **knobs, text_every=1)), LONG)
    assert not any("every 4th step" in note for note in every.notes)
    assert every.measurements.ops_ratio > synthesis.measurements.ops_ratio
    frozen = resolve(model.info, setting(used("blockwise"), used("frozen_prefix", every=3)))
    assert dict(frozen.run.arguments) == {"every": 3}, "the technique for whole canvases decides"


def test_graphs_and_compiled_code_compute_text_and_reference_at_every_step(model: OmniVoiceSpeech) -> None:
    info = replace(model.info, lacking=())
    for other in ("graphs", "compilation"):
        plan = resolve(info, setting(used("blockwise"), used(other)))
        assert plan.run is None
        title = technique(other).title
        assert f"Text and reference were computed at every step: {title} takes whole passes." in plan.notes


def test_the_grid_can_be_heard_at_every_step(model: OmniVoiceSpeech) -> None:
    chosen = setting(post_process=False)
    trace = spoken(model, chosen).trace.demasking
    (passage,) = trace.passages
    plan = resolve(model.info, chosen)
    parts = [model.decode_partial(passage, step, voice(), plan, lambda: None) for step in range(6)]
    assert {len(one) for one in parts} == {passage.codes.shape[1] * HOP}
    assert np.array_equal(parts[-1], raw(model, trace))
    assert not np.array_equal(parts[0], parts[-1])
    with pytest.raises(SettingError, match="There is no step 7: the passage was filled in in 6 steps"):
        model.decode_partial(passage, 6, voice(), plan, lambda: None)
    with pytest.raises(SettingError, match="not OmniVoice's"):
        model.decode_partial(replace(passage, codes=passage.codes + 64), 0, voice(), plan, lambda: None)


def test_the_first_codebooks_are_heard_alone(model: OmniVoiceSpeech) -> None:
    chosen = setting(post_process=False)
    trace = spoken(model, chosen).trace.demasking
    (passage,) = trace.passages
    plan, last = resolve(model.info, chosen), passage.steps - 1

    def first(codebooks: int) -> np.ndarray:
        return model.decode_partial(passage, last, voice(), plan, lambda: None, codebooks=codebooks)

    count = len(passage.codes)
    assert np.array_equal(first(count), first(0)) and np.array_equal(first(0), raw(model, trace))
    # As if the others had not been committed at all.
    late = np.where(np.arange(count)[:, None] < 2, 0, last)
    alike = model.decode_partial(replace(passage, order=late), 0, voice(), plan, lambda: None)
    assert np.array_equal(first(2), alike) and not np.array_equal(first(2), first(3))
    with pytest.raises(SettingError, match=f"has {count} codebooks: decode 1 to {count}, not {count + 1}"):
        first(count + 1)
    utterance = Utterance(TEXT, voice())
    figure = compute_view("codebooks", Task(model, utterance, chosen, Values(codebooks=2), Observer()))
    assert [one.title for one in figure.panels[1:]] == [f"k = {k} of {count}" for k in (1, 2, count)]


def test_progress_and_cancelling_between_steps(model: OmniVoiceSpeech) -> None:
    observer = Follower()
    spoken(model, setting(used("sentencewise")), "Rice is served. It is hot.", observer)
    done = [one.steps_done for one in observer.reports]
    assert done == list(range(1, 13)) and observer.reports[-1].steps_in_all == 12
    assert {one.tokens for one in observer.reports} == {None}
    observer = Follower(cancel_at=5)
    with pytest.raises(Cancelled):
        spoken(model, setting(), LONG, observer)
    assert observer.checks == 5


NETWORK, CODEC = "model.safetensors", "audio_tokenizer/model.safetensors"


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda root: (root / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda root: (root / "config.json").write_text("{}"), "lacks 'model_type'"),
        (lambda root: (root / CODEC).unlink(), "holds no weights"),
        (lambda root: shutil.copy(root / NETWORK, root / CODEC), "is not the codec of OmniVoice"),
        (lambda root: shutil.copy(root / CODEC, root / NETWORK), "does not fit this architecture"),
    ],
)
def test_damaged_releases_are_named(root: Path, tmp_path: Path, harm: Callable[[Path], object], said: str) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    harm(copy)
    with pytest.raises(CheckpointError, match=said):
        load(copy)


def test_sentences_of_several_scripts() -> None:
    assert sentences("One here. Two there! Dr. Smith came.") == ["One here.", "Two there!", "Dr. Smith came."]
    assert sentences("你好。今天天气很好！“走吧。”他说。") == ["你好。", "今天天气很好！", "“走吧。”他说。"]
    assert sentences("こんにちは。元気ですか？はい。") == ["こんにちは。", "元気ですか？", "はい。"]


JOINING_RATE = 24000
TENTH = JOINING_RATE // 10


@pytest.mark.parametrize("sizes", [(24000,), (1000, 3000, 20000), (500,) * 48])
def test_pieces_come_to_the_same_however_they_come(sizes: tuple[int, ...]) -> None:
    joiner, speech = StreamedPassages(JOINING_RATE, level=0.2), np.sin(np.arange(JOINING_RATE) / 9, dtype=np.float32)
    assert joiner.begin() == 0
    pieces = [joiner.push(part) for part in np.split(speech, np.cumsum(sizes)[:-1])]
    second = joiner.begin()
    pieces += [joiner.push(speech), joiner.finish()]
    whole = np.concatenate(pieces)
    assert second == JOINING_RATE + TENTH
    assert len(whole) == 2 * JOINING_RATE + TENTH
    assert not whole[JOINING_RATE:second].any()
    assert np.allclose(whole[TENTH : JOINING_RATE - TENTH], speech[TENTH : JOINING_RATE - TENTH])
    assert np.allclose(whole[second + TENTH : -TENTH], speech[TENTH:-TENTH])
    assert abs(whole[0]) < 1e-6 and abs(whole[-1]) < 1e-6
