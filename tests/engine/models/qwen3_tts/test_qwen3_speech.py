"""Qwen3-TTS's releases as the engine uses them, from the folder to audio.

The folders are tiny, in the official layout, with random weights: what they say is noise, but every step is real.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import paretone
from paretone import device, models
from paretone.errors import AudioError, Cancelled, CheckpointError, SettingError, TextError
from paretone.measure.roofline.language_stages import language_stages
from paretone.models.base import Synthesis, Utterance, Voice, finished_part
from paretone.models.catalogue import recognised, voice, voice_or_recording, voice_problem, voices
from paretone.models.families.language_network import TokenModel
from paretone.models.files.layer_importance import DIVERGENCE
from paretone.models.kernels.graphs import GraphCache
from paretone.models.qwen3_tts import voices as reading
from paretone.models.qwen3_tts.adapter import QwenSpeech
from paretone.models.qwen3_tts.checkpoint import OfficialFolder
from paretone.models.qwen3_tts.config import SPEAKERS
from paretone.models.qwen3_tts.prompts import CHAT_OF_INSTRUCTION
from paretone.models.qwen3_tts.speech_tokenizer import FRAMES_OF_PART
from paretone.observer import Observer
from paretone.sampling.autoregressive import decode
from paretone.sampling.frame_speculation import speculate_frames
from paretone.sampling.tokens import Nucleus
from paretone.sampling.verification import by_token
from paretone.setting.plan import InnerDrafts
from paretone.setting.setting import UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.studies import definition
from paretone.techniques.resolving import resolve
from paretone.techniques.spade.measuring import measure_layers, own_speech
from tests.engine.command_line import Console, loaded
from tests.engine.models.official import load, refused, setting, used, write_noise
from tests.engine.recorder import Follower, collected
from tests.engine.speaking import spoken_together, stream
from tests.parity.fixtures import golden_folder

pytest.importorskip("tokenizers")

BASE, CUSTOM, DESIGN = (f"Qwen3-TTS-12Hz-1.7B-{kind}" for kind in ("Base", "CustomVoice", "VoiceDesign"))
TEXT = "Good day."
FRAME = 1920
RYAN, DYLAN = (Voice(name, name, "", "") for name in ("ryan", "dylan"))


def folder_of(name: str) -> Path:
    found = golden_folder() / "qwen3" / f"qwen3_release_{name}"
    if not found.is_dir():
        pytest.skip(f"there is no {found}")
    return found


def changed(root: Path, to: Path, **changes: object) -> Path:
    """A copy of a release with another ``config.json``."""
    shutil.copytree(root, to)
    path = to / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    return to


@pytest.fixture(scope="module")
def clone() -> QwenSpeech:
    return load(BASE, folder_of("base"))


@pytest.fixture(scope="module")
def custom() -> QwenSpeech:
    return load(CUSTOM, folder_of("custom_voice"))


@pytest.fixture(scope="module")
def recording(voice: Voice) -> Voice:
    return replace(voice, transcript="What was said here.")


def speak(model: QwenSpeech, who: Voice, *techniques: UsedTechnique, text: str = TEXT, **options: object) -> Synthesis:
    return synthesise(model, text, who, setting(model.info.id, *techniques, **options))


def test_releases_are_recognised_by_their_description(tmp_path: Path) -> None:
    assert recognised(folder_of("base")).id == BASE and recognised(folder_of("custom_voice")).id == CUSTOM
    small = changed(folder_of("custom_voice"), tmp_path / "small", tts_model_size="0b6")
    found = recognised(small)
    assert found.id == "Qwen3-TTS-12Hz-0.6B-CustomVoice"
    assert "instruction" not in {one.name for one in found.options}, "upstream drops it for this one"
    refused(BASE, small, r"is not Qwen3-TTS 1\.7B Base: .* says Qwen3-TTS 0\.6B Custom")
    strange = changed(folder_of("custom_voice"), tmp_path / "strange", tts_model_size="9b")
    refused(BASE, strange, "says custom_voice 9b, no release; choose another folder")
    for folder in (strange, folder_of("base") / "speech_tokenizer"):
        assert "Qwen3-TTS" in recognised(folder).title
    refused(BASE, folder_of("base") / "speech_tokenizer", "is a speech tokenizer, a part of Qwen3-TTS: choose the fol")
    (strange / "config.json").unlink()
    assert "Qwen3-TTS" in recognised(strange).title, "by the names of its weights"
    refused(BASE, strange, r"it lacks config\.json")


def test_releases_as_trainings_leave_them(tmp_path: Path) -> None:
    """The weights of the speaker encoder in a release of named speakers, wrapped names, another file, shards."""
    talker = json.loads((folder_of("base") / "config.json").read_text(encoding="utf-8"))["talker_config"]
    own = talker | {"spk_id": {"Me": [5]}, "spk_is_dialect": {}}
    tuned = changed(folder_of("base"), tmp_path / "tuned", tts_model_type="custom_voice", talker_config=own)
    weights = load_file(tuned / "model.safetensors")
    (tuned / "model.safetensors").unlink()
    refused(CUSTOM, tuned, r"it lacks model\.safetensors")
    torch.save({f"module.{name}": value for name, value in weights.items()}, tuned / "pytorch_model.bin")
    assert len(speak(load(CUSTOM, tuned), Voice("me", "Me", "", "")).samples)
    refused(
        CUSTOM, changed(tuned, tmp_path / "a", talker_config=own | {"spk_id": {"Me": 9999}}), "Me should be at most"
    )
    base = changed(folder_of("custom_voice"), tmp_path / "b", tts_model_type="base")
    refused(BASE, base, r"is not Qwen3-TTS of the kind that .* names: it lacks 'speaker_encoder\.…'")
    codec = base / "speech_tokenizer" / "config.json"
    codec.write_text(codec.read_text(encoding="utf-8").replace("_12hz", "_25hz"), encoding="utf-8")
    refused(BASE, base, "has model_type 'qwen3_tts_tokenizer_25hz'; only 'qwen3_tts_tokenizer_12hz' is supported")


def test_audio_is_the_same_for_every_number_of_frames_per_call(clone: QwenSpeech, recording: Voice) -> None:
    expected, pieces = None, {}
    for count in (1, 2, 5, 300):
        streamed, whole = collected(stream(clone, TEXT, recording, setting(BASE, frames_per_call=count)))
        pieces[count] = len(streamed)
        assert np.array_equal(np.concatenate([one.samples for one in streamed]), whole.samples)
        expected = whole.samples if expected is None else expected
        assert np.abs(whole.samples - expected).max() < 1e-5
        frames = len(whole.samples) // FRAME
        assert len(streamed[0].samples) == FRAME * min(count, frames) and len(whole.samples) % FRAME == 0
        assert pieces[count] == -(-frames // count)
    assert whole.measurements.streaming_difference is None, "it is exact"


def test_a_recording_is_continued_or_lends_its_voice(clone: QwenSpeech, recording: Voice) -> None:
    continued, lent = (speak(clone, recording, **{"continue": on}) for on in (True, False))
    assert not np.array_equal(continued.samples[:FRAME], lent.samples[:FRAME])
    silent = Voice("own", "Own", recording.audio, "")
    assert np.array_equal(speak(clone, silent, **{"continue": False}).samples, lent.samples)
    with pytest.raises(TextError, match="switch “Continue the recording” off"):
        speak(clone, silent)
    with pytest.raises(AudioError, match="in the voice of a recording"):
        speak(clone, RYAN)


def test_named_speakers_are_its_voices(custom: QwenSpeech, tmp_path: Path) -> None:
    folder = str(folder_of("custom_voice"))
    assert tuple(one.id for one in voices(CUSTOM)) == SPEAKERS, "before it is downloaded"
    assert {one.id for one in voices(CUSTOM, folder)} <= set(SPEAKERS)
    assert voice("ryan", CUSTOM, folder).title == "Ryan"
    first, second = (speak(custom, voice(name, CUSTOM, folder)) for name in ("ryan", "dylan"))
    assert not np.array_equal(first.samples[:FRAME], second.samples[:FRAME])
    talker = json.loads((folder_of("custom_voice") / "config.json").read_text(encoding="utf-8"))["talker_config"]
    own = changed(folder_of("custom_voice"), tmp_path / "own", talker_config=talker | {"spk_id": {"Me": 1050}})
    assert [one.id for one in voices(CUSTOM, str(own))] == ["me"], "of a fine-tune"
    none = changed(folder_of("custom_voice"), tmp_path / "none", talker_config=talker | {"spk_id": {}})
    assert not voices(CUSTOM, str(none)) and "names no speaker; its talker_config needs spk_id" in refused(CUSTOM, none)
    with pytest.raises(SettingError, match=r"The files of Qwen3-TTS 1.7B CustomVoice in .*none name no voice"):
        voice("ryan", CUSTOM, str(none))
    with pytest.raises(SettingError, match="no speaker 'me'; it has"):
        speak(custom, voice("me", CUSTOM, str(own)))
    with pytest.raises(SettingError, match="There is no voice named 'nobody'"):
        voice("nobody", CUSTOM, folder)


def test_a_dialect_must_be_a_language(tmp_path: Path) -> None:
    root = folder_of("custom_voice")
    talker = json.loads((root / "config.json").read_text(encoding="utf-8"))["talker_config"]
    dialects = {"spk_is_dialect": {"Ryan": "Unheard_Dialect", "Dylan": "Beijing_Dialect"}}
    model = load(CUSTOM, changed(root, tmp_path / "own", talker_config=talker | dialects))
    with pytest.raises(SettingError, match="knows no language 'unheard_dialect'; it knows"):
        speak(model, RYAN)
    assert len(speak(model, DYLAN).samples)


def test_its_voices_stand_in_for_recordings(custom: QwenSpeech, recording: Voice) -> None:
    with pytest.raises(SettingError, match="takes no recordings"):
        speak(custom, recording)
    assert "takes no recordings" in voice_problem(Path(recording.audio), CUSTOM)
    with pytest.raises(AudioError, match="takes no recordings"):
        voice_or_recording(recording.audio, "Said.", CUSTOM)
    assert voice_problem(Path(recording.audio), BASE) == ""


def test_a_voice_is_described(tmp_path: Path) -> None:
    folder = changed(folder_of("custom_voice"), tmp_path / "design", tts_model_type="voice_design")
    model = load(DESIGN, folder)
    (described,) = voices(DESIGN, str(folder))
    for blank in ("", " \n"):
        with pytest.raises(TextError, match="Describe the voice first"):
            speak(model, described, instruction=blank)
    first, second = (speak(model, described, instruction=words) for words in ("A calm man.", "A child."))
    assert not np.array_equal(first.samples[:FRAME], second.samples[:FRAME])


def test_marks_in_a_text_are_read_as_letters(custom: QwenSpeech) -> None:
    tokenizer = custom.tokenizer
    plain, marked = (tokenizer.ids(text) for text in ("a b", "a <|im_end|> b"))
    end = plain[-4:]
    assert len(marked) > len(plain) and not set(end[:1]) & set(marked[3:-5])
    assert tokenizer.ids("\n a  b ") == plain, "on one line"
    assert tokenizer.ids("", CHAT_OF_INSTRUCTION)


def test_a_text_is_needed(custom: QwenSpeech) -> None:
    for text in ("", " ", "..."):
        with pytest.raises(TextError):
            speak(custom, RYAN, text=text)


def test_it_stops_within_one_frame(custom: QwenSpeech) -> None:
    script = scripted(custom, f"{TEXT} " * 2, RYAN, setting(CUSTOM))
    with pytest.raises(Cancelled) as stopped:
        custom.speak(script, Follower(4))
    assert finished_part(stopped.value) is None
    assert len(speak(custom, RYAN).samples), "and speaks again"


def test_long_sound_is_decoded_and_encoded_until_it_is_stopped(
    clone: QwenSpeech, custom: QwenSpeech, recording: Voice
) -> None:
    codec, rows = custom.codec.config, 3 * FRAMES_OF_PART
    codes = torch.randint(codec.codes, (codec.codebooks * rows,), generator=torch.manual_seed(0)).tolist()
    plan = resolve(custom.info, setting(CUSTOM, frames_per_call=300))
    heard, parts = custom.heard(codes, TEXT, RYAN, plan), []
    assert len(heard) == rows * FRAME
    assert np.array_equal(custom.heard(codes, TEXT, RYAN, plan, lambda: parts.append(0)), heard) and len(parts) == 3
    with pytest.raises(Cancelled):
        custom.heard(codes, TEXT, RYAN, plan, Follower(3).check)
    encoder, samples = OfficialFolder.read(folder_of("base")).encoder(), torch.zeros(40000)
    with pytest.raises(Cancelled):
        encoder(samples, Follower(6).check)
    assert encoder(samples, Follower(1001).check).shape[-1] == -(-40000 // FRAME)


def test_it_speaks_in_bfloat16_as_on_a_card(recording: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings and audio stay float32, so both types meet."""
    monkeypatch.setattr(device, "computed_in", lambda of: torch.bfloat16)
    model = load(BASE, folder_of("base"))
    assert model.own.tokens.predictor.tables.dtype == torch.bfloat16 and model.info.precision == "bfloat16"
    for continued in (True, False):
        assert np.isfinite(speak(model, recording, **{"continue": continued}).samples).all()


def test_runaway_speech_is_stopped_and_said(custom: QwenSpeech) -> None:
    said = speak(custom, RYAN)
    assert any("was stopped after" in note for note in said.notes)
    assert said.measurements.tokens * FRAME == len(said.samples)


def test_several_texts_are_spoken_at_once(custom: QwenSpeech) -> None:
    scripts = [scripted(custom, text, who, setting(CUSTOM)) for text, who in ((TEXT, RYAN), ("No.", DYLAN))]
    alone = [custom.speak(one) for one in scripts]
    for one, other in zip(spoken_together(custom, scripts), alone, strict=True):
        assert np.abs(one.samples - other.samples).max() < 1e-4


def test_given_frames_are_heard(custom: QwenSpeech) -> None:
    script = scripted(custom, TEXT, RYAN, setting(CUSTOM))
    ((_, decoding),) = custom.decodings(script)
    codes = [code for cycle in decoding for code in cycle.codes]
    said = custom.speak(script)
    heard = custom.heard(codes, TEXT, RYAN, script.plan)
    assert np.abs(heard[: len(said.samples)] - said.samples).max() < 1e-5
    with pytest.raises(SettingError, match="are not whole frames"):
        custom.heard(codes[:-1], TEXT, RYAN, script.plan)
    with pytest.raises(SettingError, match="has no ids of its own"):
        custom.official_prompts(TEXT, RYAN, script.plan)


def test_a_voice_is_kept(clone: QwenSpeech, recording: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    make_ready(clone, setting(BASE), recording)
    monkeypatch.setattr(reading, "read_recording", lambda *given: pytest.fail("it was read again"))
    speak(clone, recording)


# --- Techniques -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [1, 5, 64])
def test_drafts_within_frames_change_nothing(custom: QwenSpeech, most: int) -> None:
    plain = speak(custom, RYAN)
    drafted = speak(custom, RYAN, used("inner_drafts", layers=1, most=most))
    assert np.abs(drafted.samples - plain.samples).max() < 1e-4
    assert drafted.trace.decoding.tokens == plain.trace.decoding.tokens
    assert plain.measurements.ops_ratio == 1 and drafted.measurements.ops_ratio != 1
    with pytest.raises(SettingError, match="completed by 2 layers, of which from 1 to 1 may draft, not 2"):
        speak(custom, RYAN, used("inner_drafts", layers=2))


def test_frames_drafted_ahead_are_approximate_and_equal_if_all_layers_draft(custom: QwenSpeech) -> None:
    greedy = custom.internals(scripted(custom, TEXT, RYAN, setting(CUSTOM, temperature=0.0, inner_temperature=0.0)))
    model, given = greedy.networks.target.tokens, (greedy.request, greedy.sampler, lambda: 0.5)
    plain = [code for cycle in decode(model, *given) for code in cycle.codes]
    speculated = list(speculate_frames(model, model.kept(range(3)), *given, by_token(0.0, model.codes), 3))
    assert [code for cycle in speculated for code in cycle.codes] == plain
    assert max(len(cycle.tokens) for cycle in speculated) == 4 and len(plain) > 8 * len(speculated)
    drafted = speak(custom, RYAN, used("inner_drafts", ahead=2, ahead_layers=1))
    assert any(note.startswith("Approximate: frames that the first 1 layers") for note in drafted.notes)
    cycles = [one for passage in drafted.trace.decoding.passages for one in passage]
    assert all(len(one.drafted) <= 2 and len(one.tokens) <= 3 for one in cycles)
    assert len(drafted.samples) == FRAME * sum(len(one.tokens) for one in cycles)
    assert drafted.measurements.ops_ratio > 1 and drafted.measurements.target_passes == len(cycles)
    assert {one.outcome for one in cycles} & {"resampled", "bonus"}
    with pytest.raises(SettingError, match="runs 3 layers, of which fewer draft frames"):
        speak(custom, RYAN, used("inner_drafts", ahead=2))


def test_fewer_layers_of_the_talker_speak(custom: QwenSpeech) -> None:
    plain, pruned = speak(custom, RYAN), speak(custom, RYAN, used("spade", recovery="none", layers="0,2"))
    assert pruned.measurements.ops_ratio < 1
    assert not np.array_equal(pruned.samples[:FRAME], plain.samples[:FRAME])
    whole = speak(custom, RYAN, used("spade", recovery="none", layers="0,1,2"))
    assert np.abs(whole.samples - plain.samples).max() < 1e-4


@pytest.mark.parametrize("bits", ["int8", "int4"])
def test_packed_weights_speak(custom: QwenSpeech, bits: str) -> None:
    packed = used("weight_only", bits=bits, anyway=True)
    said = speak(custom, RYAN, packed)
    assert any("rounded to" in note for note in said.notes) and len(said.samples)
    assert np.array_equal(said.samples, synthesise(custom, TEXT, RYAN, setting(CUSTOM, packed)).samples)
    networks = custom.networks(resolve(custom.info, setting(CUSTOM, packed)))
    assert networks.target.tokens.predictor is not custom.own.tokens.predictor


def test_recorded_passes_and_frames_say_the_same(custom: QwenSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = setting(CUSTOM, used("graphs", bucket=32, most=64))
    with pytest.raises(SettingError, match="CUDA graphs need an NVIDIA GPU"):
        synthesise(custom, TEXT, RYAN, graphs)
    plain, recorded = speak(custom, RYAN), []

    def record(run):
        output = run()
        recorded.append(output.shape)

        def replay() -> None:
            output.copy_(run())

        return replay, output

    monkeypatch.setattr(custom, "info", replace(custom.info, lacking=()))
    monkeypatch.setattr(custom, "graphs", GraphCache(record))
    said = synthesise(custom, TEXT, RYAN, graphs)
    assert np.abs(said.samples - plain.samples).max() < 1e-4
    assert sum(len(shape) == 1 for shape in recorded) == 1, "every frame is the same recording"
    assert any("a frame of 8 codes" in note for note in said.notes)


def test_an_unrecorded_predictor_stands_for_no_later_one(custom: QwenSpeech, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: Callable[[], object]) -> None:
        raise RuntimeError("not now")

    plain, cache = custom.own.tokens.predictor, GraphCache(refuse)
    width, sampler = plain.tables.shape[-1], Nucleus()
    for _ in range(20):  # Python gives the same address again.
        made = plain.graphed(cache)
        made.predict(torch.zeros(width), torch.zeros(width), sampler, [0.5] * made.groups)
        del made
    assert len(cache.notes()) == 20, "each is tried"


def test_what_needs_single_tokens_is_not_offered(custom: QwenSpeech) -> None:
    with pytest.raises(SettingError, match="completes each token to a frame of 8 codes"):
        speak(custom, RYAN, used("speculative"))
    plain = TokenModel(custom.own.tokens.transformer, *torch.zeros(2, 3, 48), codes=2)
    with pytest.raises(SettingError, match="not frames of several codes"):
        plain.drafting(InnerDrafts(1, 1))


def test_a_voices_prefix_is_read_once(custom: QwenSpeech) -> None:
    custom.own.tokens.prefixes.__init__()
    speak(custom, RYAN)
    assert len(custom.own.tokens.prefixes) == 1
    speak(custom, RYAN, text="Something else.")
    assert len(custom.own.tokens.prefixes) == 1
    speak(custom, DYLAN)
    assert len(custom.own.tokens.prefixes) == 2


def test_layers_are_measured_by_what_was_read(custom: QwenSpeech) -> None:
    """Reading its own speech again gives what was predicted: positions are sums of whole frames."""
    utterances = [Utterance(TEXT, RYAN)]
    ((forced,),) = own_speech(custom, utterances, setting(CUSTOM, temperature=0.0), Observer())
    ((_, decoding),) = custom.decodings(scripted(custom, TEXT, RYAN, setting(CUSTOM, temperature=0.0)))
    tokens = [token for cycle in decoding for token in cycle.tokens]
    own = custom.own.tokens
    with torch.inference_mode():
        hidden = own.transformer(forced.embedded, own.cache(forced.embedded.shape[1]), forced.positions)
        logits = own.logits(hidden[0, forced.prompt - 1 : -1])
    ends = own.codes
    first = Nucleus(1.0, 1, 1.0, 1.05)
    for number, token in enumerate(tokens):
        row = logits[number : number + 1].clone()
        row[:, ends:] = -torch.inf if number < 2 else row[:, ends:]
        assert int(first.probabilities(row, tokens[:number])[0].argmax()) == token
    record = measure_layers(custom, utterances, setting(CUSTOM), (DIVERGENCE,), Observer())
    assert len(record.measures[0].values) == 3


def test_where_the_time_goes(custom: QwenSpeech) -> None:
    script = scripted(custom, TEXT, RYAN, setting(CUSTOM))
    stages, seconds = language_stages(custom.internals(script), custom.token_rate)
    assert [one.name for one in stages] == ["prefill", "decode", "frames", "decoder"] and seconds > 0
    for one in stages:
        for _, run in one.pieces:
            run()


# --- Damaged and foreign folders --------------------------------------------------------------------------------------
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of("custom_voice"), tmp_path / "copy"))


@pytest.mark.parametrize("name", ["config.json", "merges.txt", "tokenizer_config.json", "speech_tokenizer/config.json"])
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    folder = copied(tmp_path)
    (folder / name).unlink()
    assert name in refused(CUSTOM, folder)


def rewritten(path: Path, change) -> None:
    weights = load_file(path)
    change(weights)
    path.unlink()
    save_file(weights, path)


def test_weights_are_read_strictly(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "model.safetensors"
    rewritten(path, lambda weights: weights.pop("talker.codec_head.weight"))
    assert "codec_head.weight" in refused(CUSTOM, folder)
    shutil.copy(folder_of("custom_voice") / path.name, path)
    rewritten(path, lambda weights: weights.update(strange=torch.ones(2)))
    assert "holds 'strange'" in refused(CUSTOM, folder)
    shutil.copy(folder_of("custom_voice") / path.name, path)
    rewritten(folder / "speech_tokenizer" / path.name, lambda weights: weights.pop("decoder.pre_conv.conv.bias"))
    assert "pre_conv.conv.bias" in refused(CUSTOM, folder)


def test_a_codec_of_another_number_of_codes_is_refused(tmp_path: Path, recording: Voice) -> None:
    folder = Path(shutil.copytree(folder_of("base"), tmp_path / "copy"))
    path = folder / "speech_tokenizer" / "config.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    kept = described["encoder_valid_num_quantizers"]
    path.write_text(json.dumps(described | {"encoder_valid_num_quantizers": kept - 1}), encoding="utf-8")
    model = load(BASE, folder)
    noise = write_noise(tmp_path / "new.wav", seed=1)
    with pytest.raises(CheckpointError, match=f"in {kept - 1} codes a frame, but the model reads {kept}"):
        speak(model, replace(recording, audio=str(noise)))


def test_a_tokenizer_of_another_release_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "vocab.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(words | {"zzz": len(words)}), encoding="utf-8")
    assert "has another id" in refused(CUSTOM, folder)


def test_a_file_in_place_of_the_folder_is_refused() -> None:
    release = folder_of("custom_voice")
    for name in ("model.safetensors", "speech_tokenizer/config.json"):
        assert f"choose its folder, {release}." in refused(CUSTOM, release / name)


# --- On the command line and from Python ------------------------------------------------------------------------------
@pytest.fixture
def console(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setattr(models, "load_model", loaded)
    return Console(capsys)


def test_all_three_kinds_of_voice_speak_on_the_command_line(console: Console, recording: Voice, tmp_path: Path) -> None:
    design, out = changed(folder_of("custom_voice"), tmp_path / "design", tts_model_type="voice_design"), tmp_path / "a"
    cloned = ("speak", "--model", BASE, "--folder", folder_of("base"), "--voice", recording.audio)
    named = ("speak", "--model", CUSTOM, "--folder", folder_of("custom_voice"), "--voice", "dylan")
    described = ("speak", "--model", DESIGN, "--folder", design)
    rest = ("--text", TEXT, "--out", out.with_suffix(".wav"))
    for given in (
        (*cloned, "--transcript", recording.transcript),
        (*cloned, "--no-continue"),
        (*named, "--language", "english"),
        (*described, "--instruction", "A calm old man."),
    ):
        assert console.data(*given, *rest, "--json")["audio_seconds"] > 0.1
    failed = console(*cloned, *rest)
    assert failed.code and "--transcript WORDS" in failed.err
    failed = console(*described, *rest)
    assert failed.code and "Describe the voice first" in failed.err
    told = console.data(*(one for one in named if one not in ("--model", CUSTOM)), *rest, "--json")
    assert told["setting"]["model"] == CUSTOM, "by the files in its folder"
    place = named[3:5]
    assert console.data("models", *place, "--json")["id"] == CUSTOM
    assert "does not say which model it is" in console("models", "--folder", tmp_path).err
    assert "PCG (acceptance in groups) does not know" in console("group-tokens", *place).err
    assert "a frame of 16 codes before" in console("train", "draft", *place, "--steps", 1, "--work", tmp_path).err
    assert "a frame of 16 codes before" in console("export-model", "draft", *place, "--out", tmp_path / "x").err
    study = {"title": "A", "folder": str(place[1]), "sentences": ["A."], "voices": ["ryan"], "setting": [{"name": "A"}]}
    assert definition.parse(study).model == CUSTOM
    failed = console(*named[:-1], "nobody", *rest)
    assert failed.code and "There is no voice named 'nobody'" in failed.err
    assert [one["id"] for one in console.data("models", CUSTOM, "--json")["voices"]] == list(SPEAKERS)


def test_it_speaks_from_python() -> None:
    model = paretone.load(CUSTOM, folder=folder_of("custom_voice"), device="cpu")
    said, other = (model.speak(TEXT, voice=one) for one in ("ryan", "dylan"))
    assert "ryan" in model.voices and len(said.samples) % FRAME == 0
    assert not np.array_equal(said.samples[:FRAME], other.samples[:FRAME])
