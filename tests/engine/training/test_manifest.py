"""Manifests of recordings, the features that they become, and sentences to speak."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.mel import MelFrontEnd
from paretone.errors import Cancelled, TrainingError
from paretone.front_end.lexicon import default_lexicon
from paretone.front_end.phones import labels
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.text import Vocabulary
from paretone.observer import Observer
from paretone.paths import resource
from paretone.training import sentences as module
from paretone.training.features import CharacterReader, PhoneReader, check_rows, prepare, reader
from paretone.training.manifest import LINES_NAMED, ManifestRow, read_manifest, require_both
from paretone.training.requests import FineTuningRequest
from paretone.training.runs import with_validation
from paretone.training.sentences import normalised_words, runs, training_sentences
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.training.learning import Recorder
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_model import toy_manifest, toy_model


def _recording(path: Path, seconds: float = 0.5) -> None:
    soundfile.write(path, np.sin(np.arange(int(16_000 * seconds)) / 9.0), 16_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        _recording(tmp_path / f"{number}.wav")
    return tmp_path


def _manifest(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _rows(*extra: str) -> str:
    return "audio,text\n" + "".join(f"{number}.wav,Sentence {number}.\n" for number in range(4)) + "".join(extra)


@pytest.mark.parametrize("head", ["", "audio_file|text\n"])
def test_f5_lists_of_audio_and_text(folder: Path, head: str):
    lines = [f'{number}.wav|He said: "Yes, {number}".\n' for number in range(5)]
    rows = read_manifest(_manifest(folder, head + "".join(lines)))
    assert [row.text for row in rows] == [f'He said: "Yes, {number}".' for number in range(5)]
    assert rows[4].audio == folder / "4.wav" and rows[0].line == 1 + bool(head)
    with pytest.raises(TrainingError, match="line 2: there is no file"):
        read_manifest(_manifest(folder, "0.wav|One.\nnone.wav|Two.\n2.wav|Three.\n3.wav|Four.\n"))


def test_columns_in_any_order(folder: Path):
    rows = read_manifest(_manifest(folder, _rows('4.wav,"One, two."\n', "\n", "5.wav,Six.\n")))
    assert [row.line for row in rows] == [2, 3, 4, 5, 6, 8] and rows[4].text == "One, two."
    assert rows[0].audio == folder / "0.wav"
    assert [row.held_out for row in rows] == [True, False, False, True, False, False]
    lines = ["set,phones,voice,text,audio"]
    lines += [f"{('train', 'validation')[n % 2]},pau:0.1 aa:0.3 pau:0.5,me,Ah.,{n}.wav" for n in range(6)]
    rows = read_manifest(_manifest(folder, "\ufeff" + "\n".join(lines)))
    assert rows[0].phones == (("pau", 0.0, 0.1), ("aa", 0.1, 0.3), ("pau", 0.3, 0.5))
    assert {row.voice for row in rows} == {"me"} and [row.held_out for row in rows] == [False, True] * 3


def test_every_line_at_fault_is_named_with_what_is_wrong(folder: Path):
    (folder / "broken.wav").write_bytes(b"no sound")
    _recording(folder / "short.wav", 0.1)
    _recording(folder / "long.wav", 31)
    path = _manifest(
        folder,
        "audio,text,phones,set\n"
        "0.wav,Good.,,\n"
        "gone.wav,Lost.,,\n"
        "1.wav,,,\n"
        "broken.wav,Noise.,,\n"
        "short.wav,Hm.,,\n"
        "long.wav,And so on.,,\n"
        "2.wav,Ah.,aa,\n"
        "2.wav,Ah.,aa:0.4 s:0.2,\n"
        "2.wav,Ah.,aa:9,\n"
        "2.wav,Ah.,,test\n"
        ",Ah.,,\n"
        "3.wav,One, two.,,\n",
    )
    with pytest.raises(TrainingError) as refusal:
        read_manifest(path)
    lines = str(refusal.value).splitlines()
    assert str(path) in lines[0] and "11 lines" in lines[0]
    expected = ["no file", "no text", "not a recording", "lasts 0.10 s", "lasts 31.00 s", "phone:end"]
    expected += ["one after the other", "one after the other", "'test'", "no audio file", "more cells"]
    for number, (line, words) in enumerate(zip(lines[1:], expected, strict=True), start=3):
        assert line.strip().startswith(f"line {number}: ") and words in line


def test_many_lines_at_fault_are_counted(folder: Path):
    path = _manifest(folder, _rows(*(f"gone{number}.wav,Text.\n" for number in range(50))))
    with pytest.raises(TrainingError, match=f"50 lines[^$]*and {50 - LINES_NAMED} more"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("file,text\n0.wav,Hello.\n", "file, text"),
        ("audio,text,speed\n0.wav,Hello.,2\n", "nothing else"),
        ("audio,text\n0.wav,One.\n1.wav,Two.\n", "lists 2 recordings"),
        ('audio,text\n0.wav,"never closed\n', "not a CSV"),
    ],
)
def test_what_is_no_manifest_is_said(folder: Path, text: str, words: str):
    with pytest.raises(TrainingError, match=words):
        read_manifest(_manifest(folder, text))


def test_an_evaluation_set_takes_the_place_of_what_is_held_out(folder: Path, tmp_path: Path):
    manifest = _manifest(folder, "audio,text,set\n0.wav,Zero.,train\n1.wav,One.,\n2.wav,Two.,validation\n3.wav,No.,\n")
    seed_tts = folder / "meta.lst"
    seed_tts.write_text("a|Said.|4.wav|To say.|5.wav\nb|Said.|5.wav|Not recorded.\n", encoding="utf-8")
    asked = FineTuningRequest(model="f5-mini", work=str(tmp_path / "work"), manifest=str(manifest))
    assert with_validation(asked, Observer()) is asked
    told = Recorder()
    chosen = with_validation(replace(asked, validation=str(seed_tts)), told)
    rows = read_manifest(Path(chosen.manifest))
    assert [row.text for row in rows if not row.held_out] == ["Zero.", "One.", "No."]
    assert [(row.text, row.audio, row.voice) for row in rows if row.held_out] == [("To say.", folder / "5.wav", "4")]
    assert "2 lines" in "".join(told.lines) and "SHA-256" in "".join(told.lines)
    resumed = replace(asked, validation=str(seed_tts), resume=True)
    assert with_validation(resumed, told) == replace(chosen, resume=True)
    with pytest.raises(TrainingError, match="was validated on, other recordings"):
        with_validation(replace(asked, resume=True), told)
    seed_tts.write_text("a|Said.|4.wav|To say.|3.wav\n", encoding="utf-8")
    with pytest.raises(TrainingError, match="resume it as it was started"):
        with_validation(resumed, told)
    seed_tts.write_text("b|Said.|4.wav|Not recorded.\n", encoding="utf-8")
    with pytest.raises(TrainingError, match="no recordings of its texts"):
        with_validation(replace(asked, validation=str(seed_tts)), told)
    with pytest.raises(TrainingError, match="0 utterances to train on and 1 to validate on"):
        require_both((), (rows[-1],))


def test_a_manifest_that_cannot_be_read_is_said(tmp_path: Path):
    with pytest.raises(TrainingError, match="no manifest"):
        read_manifest(tmp_path / "nowhere.csv")
    with pytest.raises(TrainingError, match="could not be read: it is a folder"):
        read_manifest(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TrainingError, match="could not be read: it is a pipe"):
        read_manifest(tmp_path / "pipe.csv")
    (tmp_path / "latin.csv").write_bytes(b"audio,text\n0.wav,caf\xe9\n")
    with pytest.raises(TrainingError, match="UTF-8"):
        read_manifest(tmp_path / "latin.csv")


# --- Features ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return toy_manifest(tmp_path)


@pytest.fixture
def phones(tmp_path: Path) -> PhoneReader:
    read = reader(read_f5_checkpoint(toy_model(tmp_path / "model")))
    assert isinstance(read, PhoneReader)
    return read


def test_prepared_speech_is_what_the_corpus_holds(tmp_path: Path, manifest: Path, phones: PhoneReader):
    examples = prepare(manifest, read_manifest(manifest), phones, tmp_path / "work")
    corpus = toy_corpus()
    assert (len(examples.training), len(examples.held_out)) == (len(corpus.training), len(corpus.held_out))
    for example, clip in zip(examples.training, corpus.training, strict=True):
        assert example.voice == clip.voice and example.frames == clip.frames
        np.testing.assert_allclose(example.mel.astype(np.float32), clip.mel.astype(np.float32), atol=2e-2)
        np.testing.assert_array_equal(example.ids, labels(clip.phones, clip.frames, VOCABULARY))


def test_it_is_prepared_once_and_again_when_something_changed(tmp_path: Path, manifest: Path):
    read = []

    class Counting(PhoneReader):
        def read(self, row: ManifestRow) -> tuple[np.ndarray, np.ndarray]:
            read.append(row.line)
            return super().read(row)

    counting = Counting(VOCABULARY)
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
    assert [line.split(":")[0].strip() for line in lines] == ["line 3", "line 4"] and "'xx'" in lines[0]


def test_recordings_that_turn_out_unusable_are_listed(tmp_path: Path, manifest: Path, phones: PhoneReader):
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


# --- Sentences --------------------------------------------------------------------------------------------------------
def test_sentences_are_different_and_of_fitting_length():
    sentences = training_sentences(2_000)
    assert len(set(sentences)) == 2_000
    assert all(module.SHORTEST <= len(one) <= module.LONGEST for one in sentences)
    assert all(one[0].isupper() and one[-1] in ".?" for one in sentences)
    assert not any("<" in one or "_" in one or "  " in one for one in sentences)
    grammar = {word for one in training_sentences(3_000) for word in normalised_words(one)}
    assert len(grammar) > 3_000
    assert sum(3 <= len(word) <= 9 for word in grammar & set(default_lexicon().words())) > 2_500
    text = " ".join(training_sentences(3_000)).lower()
    assert " an apple" in text or " an orange" in text or " an old" in text
    assert " a apple" not in text and " a orange" not in text


def test_sentences_of_the_test_set_never_occur_not_even_a_run_of_their_words():
    harvard = resource("sentences", "harvard.txt").read_text(encoding="utf-8").splitlines()
    forbidden = set().union(*map(runs, harvard))
    assert forbidden
    assert all(forbidden.isdisjoint(runs(one)) for one in training_sentences(7_000, excluded=harvard))
    unwanted = [one for one in training_sentences(400) if len(normalised_words(one)) >= module.SHARED_RUN][:20]
    assert not set(unwanted) & set(training_sentences(400, excluded=unwanted))
