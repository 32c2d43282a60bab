from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.recording import KINDS, SOUND, ogg, read_recording, readable_kinds, writable_kinds, write_sound
from paretone.errors import AudioError, PlainError
from paretone.measure.loudness import headroom


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
    assert found.samples.dtype == np.float32
    assert np.abs(found.samples - tone(1)).max() <= tolerance


def test_stereo_is_mixed_and_said(tmp_path: Path) -> None:
    stereo = np.stack([tone(1), tone(1, level=0.1)], axis=1)
    found = read_recording(str(written(tmp_path / "a.wav", stereo, subtype="FLOAT")))
    assert np.allclose(found.samples, tone(1, level=0.2), atol=1e-6)
    assert found.notes == ("a.wav: 2 channels were mixed to one.",)


def test_a_telephone_recording_is_taken_and_said(tmp_path: Path) -> None:
    found = read_recording(written(tmp_path / "a.wav", tone(1, 8000), 8000))
    assert found.sample_rate == 8000
    assert "8 kHz" in found.notes[0]


def test_more_than_full_scale_is_said(tmp_path: Path) -> None:
    assert "full scale" in read_recording(written(tmp_path / "a.wav", tone(1, level=1.5), subtype="FLOAT")).notes[0]


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
    with pytest.raises(
        AudioError, match=rf"{named}.*convert it to WAV or FLAC.*ffmpeg -i 'my voice.m4a' 'my voice.wav'"
    ):
        read_recording(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"gone\.wav is missing"):
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
        spectrum = np.abs(np.fft.rfft(read[:RATE]))
        assert spectrum.argmax() == 440
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
    assert set(readable_kinds()) < SOUND and {".m4a", ".wma"} < SOUND - set(readable_kinds())
    for ending in set(readable_kinds()) & {".aiff", ".au", ".caf", ".w64", ".oga"}:
        soundfile.write(tmp_path / f"b{ending}", tone, RATE, format={".aiff": "AIFF", ".oga": "OGG"}.get(ending))
        assert soundfile.info(tmp_path / f"b{ending}").frames == RATE
    # As of libsndfile before 1.1.
    known, able = soundfile.available_formats(), soundfile.check_format
    monkeypatch.setattr(soundfile, "available_formats", lambda: {one: known[one] for one in known if one != "MP3"})
    monkeypatch.setattr(soundfile, "check_format", lambda form, *rest: form != "MP3" and able(form, *rest))
    assert writable_kinds() == tuple(one for one in KINDS if one != ".mp3") and ".mp3" not in readable_kinds()
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
