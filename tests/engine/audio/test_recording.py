"""Recordings as they are read, written and made ready as prompts."""

import io
import re
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio import recording as module
from paretone.audio.cross_fade import DECAY, RELEASE, CrossFader, PassageJoiner, faded_after
from paretone.audio.prompt import prepare_prompt
from paretone.audio.recording import Recording, ogg, read_recording, readable_kinds, writable_kinds, write_sound
from paretone.errors import AudioError, PlainError
from paretone.measure.loudness import headroom
from paretone.models.catalogue import voice


def recording(rate: int, parts: list[tuple[float, int]]) -> Recording:
    """Square waves of (seconds, 16-bit level), one after the other."""
    waves = [np.where(np.arange(int(seconds * rate)) % 4 < 2, level, -level) for seconds, level in parts]
    return Recording((np.concatenate(waves) / 32768).astype(np.float32), rate)


# Lengths and checksums are those that pydub 0.25.1 gives with the official steps.
OFFICIAL = [
    (24000, [(0.5, 0), (2.0, 3000), (0.4, 0)], 49198, 2357893373),
    (16000, [(0.217, 40), (3.0, 5000), (2.5, 60), (3.0, 2000), (0.3, 300), (0.123, 150)], 133871, 1615617531),
    (44100, [(7.0, 3000), (1.5, 20), (6.0, 3000), (1.5, 20), (2.0, 3000)], 310856, 134675929),
    (22050, [(9.0, 3000), (0.3, 200), (9.0, 3000)], 199528, 202516193),
    (24000, [(14.0, 3000)], 289198, 3989300603),
    (48000, [(5.0, 4000), (0.2, 100), (5.0, 4000), (0.2, 100), (5.0, 4000)], 491995, 2765305974),
    (11025, [(1.0, 255), (0.5, 265), (0.5, 255)], 6052, 2973313982),
    (24000, [(3.0, 104), (2.0, 103), (3.0, 1000)], 73198, 1497969676),
]


@pytest.mark.parametrize(("rate", "parts", "length", "checksum"), OFFICIAL)
def test_gives_the_official_samples(rate: int, parts: list, length: int, checksum: int) -> None:
    prepared = prepare_prompt(recording(rate, parts))
    samples = np.round(prepared.samples * 32768).astype(np.int16)
    assert (len(samples), zlib.crc32(samples.tobytes())) == (length, checksum)
    assert (prepared.sample_rate, prepared.samples.dtype) == (rate, np.float32)


def test_cutting_is_said_keeping_all_is_not_and_what_is_silent_throughout_is_refused() -> None:
    cut = prepare_prompt(recording(24000, [(14.0, 3000)]))
    assert cut.notes == ("The reference recording was cut to its first 12.0 s.",)
    assert prepare_prompt(recording(24000, [(3.0, 3000)])).notes == ()
    with pytest.raises(AudioError, match="silent throughout"):
        prepare_prompt(recording(24000, [(3.0, 0)]))


def spoken_at(gain: float) -> Recording:
    """The first shipped voice, ``gain`` dB louder, as a 16-bit file has it."""
    samples, rate = soundfile.read(voice().audio, dtype="float32")
    return Recording(np.round(samples * 10 ** (gain / 20) * 32768).astype(np.float32) / 32768, rate)


@pytest.mark.parametrize("gain", [-36, -46, -56])
def test_speech_that_the_official_rules_find_silent_is_raised(gain: int) -> None:
    usual, found = prepare_prompt(spoken_at(0)), prepare_prompt(spoken_at(gain))
    (note,) = found.notes
    assert re.fullmatch(r"The reference recording is very quiet; it was raised by \d+ dB\.", note)
    assert found.seconds == pytest.approx(usual.seconds, abs=0.15), "nothing of it is lost"
    assert np.abs(found.samples).max() == pytest.approx(np.abs(usual.samples).max(), rel=0.2)


@pytest.mark.parametrize("gain", [-6, -12, -20])
def test_quieter_speech_that_they_accept_stays_as_it_is(gain: int) -> None:
    given, found = spoken_at(gain), prepare_prompt(spoken_at(gain))
    assert np.isin(found.samples, given.samples).all() and found.notes == ()


def test_speech_that_they_take_for_silence_in_a_quiet_recording_is_said() -> None:
    """Official samples, as in every recording that is accepted; but it is said what that costs."""
    (note,) = prepare_prompt(recording(24000, [(3.0, 104), (2.0, 103), (3.0, 1000)])).notes
    assert "counted as silence" in note and "raise it by about 17 dB" in note


def test_a_click_does_not_make_a_quiet_recording_loud() -> None:
    clicking = spoken_at(-36)
    clicking.samples[30_000] = 0.9
    found = prepare_prompt(clicking)
    assert "raised" in found.notes[0]
    assert found.seconds == pytest.approx(prepare_prompt(spoken_at(0)).seconds, abs=0.15)
    assert np.abs(found.samples).max() <= 1.0


def tone(seconds: float, rate: int = 24000, level: float = 0.3) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 220 * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def written(path: Path, samples: np.ndarray, rate: int = 24000, subtype: str | None = None) -> Path:
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


@pytest.mark.parametrize(
    ("name", "subtype", "tolerance"),
    [("a.wav", "PCM_16", 1e-4), ("a.wav", "PCM_24", 1e-6), ("a.wav", "FLOAT", 0), ("a.flac", "PCM_24", 1e-6)],
)
def test_reads_every_depth(tmp_path: Path, name: str, subtype: str, tolerance: float) -> None:
    found = read_recording(written(tmp_path / name, tone(1), subtype=subtype))
    assert (found.sample_rate, found.seconds, found.notes) == (24000, 1.0, ())
    assert found.samples.dtype == np.float32 and np.abs(found.samples - tone(1)).max() <= tolerance


def test_stereo_is_mixed_and_said(tmp_path: Path) -> None:
    stereo = np.stack([tone(1), tone(1, level=0.1)], axis=1)
    found = read_recording(str(written(tmp_path / "a.wav", stereo, subtype="FLOAT")))
    assert np.allclose(found.samples, tone(1, level=0.2), atol=1e-6)
    assert found.notes == ("a.wav: 2 channels were mixed to one.",)
    one = read_recording(written(tmp_path / "b.wav", np.stack([tone(1), 0 * tone(1)], axis=1), subtype="FLOAT"))
    assert np.array_equal(one.samples, tone(1)) and one.notes == ("b.wav: silent channels were left out (1 of 2).",)


def test_a_telephone_recording_and_more_than_full_scale_are_said(tmp_path: Path) -> None:
    found = read_recording(written(tmp_path / "a.wav", tone(1, 8000, level=1.5), 8000, "FLOAT"))
    assert found.sample_rate == 8000
    assert any("8 kHz" in note for note in found.notes) and any("full scale" in note for note in found.notes)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(0), "is empty"),
        (tone(0.1), r"lasts 0\.10 s; at least 0\.3 s"),
        (tone(600, 8000), "lasts 600 s; cut it to 60 s"),
        (tone(60.325), r"lasts 60\.4 s; cut it to 60 s"),
        (tone(60.001), r"lasts 60\.1 s; cut it to 60 s"),
        (np.full(24000, np.nan), "not numbers"),
        (np.where(np.arange(24000) == 5, np.inf, tone(1)), "not numbers"),
        (np.zeros(24000), "is silent"),
        (tone(1, level=5e-5), "is silent"),
        (np.stack([tone(1), -tone(1)], axis=1), "cancel each other out"),
    ],
)
def test_unusable_recordings_are_refused_by_name(tmp_path: Path, samples: np.ndarray, message: str) -> None:
    rate = 8000 if len(samples) == 4_800_000 else 24000
    path = written(tmp_path / "voice.wav", samples, rate, subtype="FLOAT")
    with pytest.raises(AudioError, match=rf"voice\.wav.*{message}|{message}"):
        read_recording(path)


@pytest.mark.parametrize("content", [b"", b"not audio at all" * 100, b"RIFF\x00\x00\x00\x00WAVE", b"\x00" * 5000])
def test_what_is_no_audio_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.wav"
    path.write_bytes(content)
    with pytest.raises(AudioError, match=r"notes\.wav"):
        read_recording(path)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\x00\x00\x00\x1cftypM4A \x00\x00\x02\x00", "MPEG-4"),
        (b"\xff\xf1\x50\x80", "AAC"),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"),
        (b"\x1a\x45\xdf\xa3", "WebM"),
        (b"#!AMR\n", "AMR"),
    ],
)
def test_a_sound_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path, content: bytes, named: str) -> None:
    path = tmp_path / "my voice.m4a"
    path.write_bytes(content + bytes(3000))
    said = rf"{named}.*convert it to WAV or FLAC.*ffmpeg -i 'my voice.m4a' 'my voice.wav'"
    with pytest.raises(AudioError, match=said):
        read_recording(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"There is no recording .*gone\.wav"):
        read_recording(tmp_path / "gone.wav")
    with pytest.raises(AudioError, match="it is a folder; choose a regular file"):
        read_recording(tmp_path)


def test_reading_and_preparing_need_no_torch() -> None:
    program = "import sys, paretone.audio.prompt, paretone.audio.recording; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


RATE = 24_000


def test_the_best_quality_that_fits_is_taken() -> None:
    noise = np.random.default_rng(0).standard_normal(3 * RATE).astype(np.float32)
    large, small = (ogg(0.5 * noise, RATE, most) for most in (200_000, 30_000))
    assert len(small) <= 30_000 < len(large)
    for content in (large, small):
        samples, rate = soundfile.read(io.BytesIO(content))
        assert rate == RATE and len(samples) == 3 * RATE and np.abs(samples).max() <= 1.5
    with pytest.raises(AudioError, match="choose a shorter text"):
        ogg(noise, RATE, 1_000)


@pytest.mark.parametrize("ending", [".wav", ".WAV", ".flac", ".ogg", ".mp3", ""])
def test_the_ending_names_the_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"speech{ending}"
    tone = 0.5 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    assert write_sound(path, tone, RATE) == ()
    found = soundfile.info(path)
    assert (found.format, found.samplerate) == (ending.lower().lstrip(".").upper() or "WAV", RATE)
    read, _ = soundfile.read(path, dtype="float32")
    if ending in ("", ".wav", ".WAV"):
        assert np.array_equal(read, tone)
    else:
        assert np.abs(np.fft.rfft(read[:RATE])).argmax() == 440
        assert np.abs(read).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["speech.txt", "speech.m4a", "speech.wav.part"])
def test_another_ending_is_refused_with_those_that_can_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlainError, match=r"ends in none of \.wav, \.flac, \.ogg, \.mp3; choose one"):
        write_sound(tmp_path / name, np.zeros(10, np.float32), RATE)
    assert not any(tmp_path.iterdir())


def test_what_can_be_read_and_written_follows_libsndfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tone = 0.5 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    for ending in writable_kinds():
        write_sound(tmp_path / f"a{ending}", tone, RATE)
        assert ending in readable_kinds() and soundfile.info(tmp_path / f"a{ending}").frames
    assert set(readable_kinds()) < module.SOUND and {".m4a", ".wma"} < module.SOUND - set(readable_kinds())
    for ending in set(readable_kinds()) & {".aiff", ".au", ".caf", ".w64", ".oga"}:
        soundfile.write(tmp_path / f"b{ending}", tone, RATE, format={".aiff": "AIFF", ".oga": "OGG"}.get(ending))
        assert soundfile.info(tmp_path / f"b{ending}").frames == RATE
    # As of libsndfile before 1.1.
    known, able = soundfile.available_formats(), soundfile.check_format
    monkeypatch.setattr(soundfile, "available_formats", lambda: {one: known[one] for one in known if one != "MP3"})
    monkeypatch.setattr(soundfile, "check_format", lambda form, *rest: form != "MP3" and able(form, *rest))
    assert writable_kinds() == tuple(one for one in module.KINDS if one != ".mp3") and ".mp3" not in readable_kinds()
    with pytest.raises(PlainError, match=r"ends in none of \.wav, \.flac, \.ogg; choose one"):
        write_sound(tmp_path / "speech.txt", tone, RATE)


def test_what_is_louder_than_a_format_holds_is_scaled_by_one_factor(tmp_path: Path) -> None:
    tone = 2 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    (remark,) = write_sound(tmp_path / "loud.flac", tone, RATE)
    assert "6.0 dB quieter" in remark
    read, _ = soundfile.read(tmp_path / "loud.flac", dtype="float32")
    assert read == pytest.approx(tone * headroom(tone), abs=1e-5)
    assert write_sound(tmp_path / "little.flac", 0.502 * tone, RATE) == (), "0.0 dB less is not said"
    assert np.abs(soundfile.read(tmp_path / "little.flac")[0]).max() < 1
    assert write_sound(tmp_path / "loud.wav", tone, RATE) == ()
    assert np.array_equal(soundfile.read(tmp_path / "loud.wav", dtype="float32")[0], tone)


# --- Cross-fades ------------------------------------------------------------------------------------------------------
def official_join(pieces: list[np.ndarray], fade: int) -> np.ndarray:
    """All pieces at once: the definition that the streaming form must equal."""
    joined = pieces[0].astype(np.float64)
    for piece in pieces[1:]:
        overlap = min(fade, len(joined), len(piece))
        out, into = np.linspace(1, 0, overlap), np.linspace(0, 1, overlap)
        mixed = joined[len(joined) - overlap :] * out + piece[:overlap] * into
        joined = np.concatenate([joined[: len(joined) - overlap], mixed, piece[overlap:]])
    return joined.astype(np.float32)


@pytest.mark.parametrize("fade", [0, 1, 30, 100])
@pytest.mark.parametrize("lengths", [[50], [50, 60, 70], [200, 10, 5, 300], [0, 40, 0, 40], [3, 2, 1, 2, 3]])
def test_streamed_cross_fade_equals_the_whole(fade: int, lengths: list[int]) -> None:
    random = np.random.default_rng(1)
    pieces = [random.standard_normal(length).astype(np.float32) for length in lengths]
    fader = CrossFader(fade)
    streamed = [fader.push(piece) for piece in pieces]
    assert np.array_equal(np.concatenate([*streamed, fader.finish()]), official_join(pieces, fade))
    assert len(fader.finish()) == 0


@pytest.mark.parametrize("fade", [0, 1, 30, 100])
@pytest.mark.parametrize("lengths", [[50], [50, 60, 70], [200, 10, 5, 300], [0, 40, 0, 40], [3, 2, 1, 2, 3]])
@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("known", [False, True])
def test_passages_in_pieces_are_joined_like_whole_ones(fade: int, lengths: list[int], piece: int, known: bool) -> None:
    random = np.random.default_rng(1)
    passages = [random.standard_normal(length).astype(np.float32) for length in lengths]
    joiner, streamed, starts = PassageJoiner(CrossFader(fade), len(lengths) if known else None), [], []
    for passage in passages:
        starts.append(joiner.begin())
        streamed += [joiner.push(passage[start : start + piece]) for start in range(0, len(passage), piece)]
    assert np.array_equal(np.concatenate([*streamed, joiner.finish()]), official_join(passages, fade))
    # Passages without anything in them have no place of their own.
    for number, start in enumerate(starts):
        if lengths[number]:
            assert start == len(official_join([*passages[:number], passages[number][:0]], fade)) - min(
                fade, len(official_join(passages[:number], fade)) if number else 0
            )


def test_a_passage_is_heard_before_it_ends() -> None:
    joiner = PassageJoiner(CrossFader(30))
    joiner.begin()
    assert [len(joiner.push(np.ones(length, np.float32))) for length in (100, 5)] == [70, 5]
    joiner.begin()
    assert [len(joiner.push(np.ones(20, np.float32))) for _ in range(2)] == [0, 10]


@pytest.mark.parametrize("size", [1, 700, 10_000])
def test_a_passage_is_silent_after_its_end_however_it_comes(size: int) -> None:
    passages = [np.ones(length, np.float32) for length in (5_000, 4_000)]
    ends = [1_000, 3_900]
    joiner, streamed = PassageJoiner(CrossFader(0), ends=ends), []
    for passage in passages:
        joiner.begin()
        streamed += [joiner.push(passage[first : first + size]) for first in range(0, len(passage), size)]
    heard = np.concatenate([*streamed, joiner.finish()])
    assert heard.dtype == np.float32
    assert np.array_equal(heard, np.concatenate([faded_after(*one) for one in zip(passages, ends, strict=True)]))
    first = heard[:5_000]
    assert (first[: 1_000 + RELEASE] == 1).all() and (np.diff(first) <= 0).all()
    assert not first[1_000 + RELEASE + DECAY :].any()
    assert (heard[5_000:] == 1).all(), "the end of the second has not faded yet"
