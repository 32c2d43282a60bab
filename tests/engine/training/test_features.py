from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paretone.audio.mel import MelFrontEnd
from paretone.errors import Cancelled, TrainingError
from paretone.front_end.natural.phones import PUNCTUATION
from paretone.models.catalogue import voice
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.text import Vocabulary
from paretone.training.features import CharacterReader, PhoneReader, check_rows, prepare, reader
from paretone.training.manifest import ManifestRow, read_manifest
from paretone.training.spoken_tokens import VOCABULARY
from tests.disk import tiny_disk
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_model import toy_manifest, toy_model

__all__ = ["tiny_disk"]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return toy_manifest(tmp_path)


@pytest.fixture
def phones(tmp_path: Path) -> PhoneReader:
    read = reader(read_f5_checkpoint(toy_model(tmp_path / "model")))
    assert isinstance(read, PhoneReader)
    return read


def test_prepared_speech_is_what_the_corpus_holds(tmp_path: Path, manifest: Path, phones: PhoneReader):
    from paretone.front_end.frame_phones import labels

    examples = prepare(manifest, read_manifest(manifest), phones, tmp_path / "work")
    corpus = toy_corpus()
    assert (len(examples.training), len(examples.held_out)) == (len(corpus.training), len(corpus.held_out))
    for example, clip in zip(examples.training, corpus.training, strict=True):
        assert example.voice == clip.voice
        assert example.frames == clip.frames
        np.testing.assert_allclose(example.mel.astype(np.float32), clip.mel.astype(np.float32), atol=2e-2)
        np.testing.assert_array_equal(example.ids, labels(clip.phones, clip.frames, VOCABULARY))


def test_it_is_prepared_once_and_again_when_something_changed(tmp_path: Path, manifest: Path, phones: PhoneReader):
    read = []

    class Counting(PhoneReader):
        def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
            read.append(row.line)
            return super().read(row)

    counting = Counting(phones._vocabulary)
    rows = read_manifest(manifest)
    first = prepare(manifest, rows, counting, tmp_path / "work")
    again = prepare(manifest, rows, counting, tmp_path / "work")
    assert len(read) == len(rows)
    np.testing.assert_array_equal(first.training[3].mel, again.training[3].mel)
    np.testing.assert_array_equal(first.training[3].ids, again.training[3].ids)
    shutil.copy(rows[1].audio, rows[0].audio)
    changed = prepare(manifest, read_manifest(manifest), counting, tmp_path / "work")
    assert len(read) == 2 * len(rows)
    assert changed.training[0].frames == changed.training[1].frames


def test_an_interrupted_preparation_is_not_taken_for_a_whole_one(tmp_path: Path, manifest: Path, phones: PhoneReader):
    rows = read_manifest(manifest)

    def cancel(done: int, total: int) -> None:
        if done == 5:
            raise Cancelled

    with pytest.raises(Cancelled):
        prepare(manifest, rows, phones, tmp_path / "work", cancel)
    seen: list[tuple[int, int]] = []
    prepare(manifest, rows, phones, tmp_path / "work", lambda *one: seen.append(one))
    assert seen == [(done, len(rows)) for done in range(len(rows) + 1)]


def test_recordings_without_phones_are_aligned(tmp_path: Path):
    shipped = voice()
    read = PhoneReader(VOCABULARY)
    row = ManifestRow(2, Path(shipped.audio), shipped.transcript, voice=shipped.id)
    read.check(row)
    ids, mel = read.read(row)
    assert len(ids) == len(mel)
    spoken = {read._vocabulary.phones[number] for number in ids}
    assert {name for name, start, end in shipped.phones if end - start > 0.05 and name not in PUNCTUATION} <= spoken


def test_characters_are_read_as_in_the_official_training(tmp_path: Path, manifest: Path):
    (tmp_path / "vocab.txt").write_text(" \na\nb\nT\no\ny\n", encoding="utf-8")
    read = CharacterReader(Vocabulary.read(tmp_path / "vocab.txt"), "custom")
    row = replace(read_manifest(manifest)[0], text="Toy ab")
    ids, mel = read.read(row)
    assert ids.tolist() == [3, 4, 5, 0, 1, 2]
    samples = toy_corpus().training[0].samples
    assert len(mel) == MelFrontEnd().frames(len(samples)) == len(samples) // 256 + 1
    assert CharacterReader(None, "byte").read(row)[0].tolist() == list(b"Toy ab")


def test_what_a_model_cannot_read_is_listed_with_its_lines(manifest: Path, phones: PhoneReader):
    rows = list(read_manifest(manifest))
    rows[1] = replace(rows[1], phones=(("xx", 0.0, 0.2),))
    rows[2] = replace(rows[2], phones=(), text="…")
    with pytest.raises(TrainingError) as refusal:
        check_rows(manifest, rows, phones)
    lines = str(refusal.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == ["line 3", "line 4"]
    assert "'xx'" in lines[0]


def test_recordings_that_turn_out_unusable_are_listed(tmp_path: Path, manifest: Path, phones: PhoneReader):
    import soundfile

    rows = list(read_manifest(manifest))
    for number in (2, 5):
        silent = rows[number].audio.with_suffix(".wav")
        soundfile.write(silent, np.zeros(24_000), 24_000)
        rows[number] = replace(rows[number], audio=silent)
    with pytest.raises(TrainingError, match=r"2 lines(.|\n)*line 4: .*silent(.|\n)*line 7: .*silent"):
        prepare(manifest, rows, phones, tmp_path / "work")


def test_a_full_disk_is_said(tiny_disk: Path, tmp_path: Path, manifest: Path, phones: PhoneReader):
    (tiny_disk / "ballast").write_bytes(bytes(500 * 1024))
    with pytest.raises(TrainingError, match="disk is full"):
        prepare(manifest, read_manifest(manifest), phones, tiny_disk / "work")
