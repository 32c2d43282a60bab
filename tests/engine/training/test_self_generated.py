"""What language models learn from: their own speech, and recordings as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from paretone.errors import Cancelled, TrainingError
from paretone.models import load_model
from paretone.models.catalogue import entry, voice, voices
from paretone.models.families.language_network import IGNORED
from paretone.models.loading import LoadRequest
from paretone.models.minis import lm_mini as adapter
from paretone.models.minis.lm_mini import LmMiniFolder, LmMiniParts, read_parts
from paretone.models.minis.speaking import NaturalVoice
from paretone.models.networks.quantised_mel import token_phones
from paretone.observer import Observer
from paretone.paths import resource
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training import teachers
from paretone.training.spoken_tokens import SpokenTokens, collate, read_tokens, record_tokens, write_tokens
from paretone.training.teachers import read_teacher, speak_tokens
from tests.engine.small_language import CODES, END_OF_TEXT, FIRST_CODE, START_OF_SPEECH, write_model
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_model import toy_manifest

SENTENCES = ("Rice is good.", "The box was thrown.")


class LikeliestToTheEnd:
    """Always the likeliest code, and the end as soon as speech may end."""

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        chosen = logits[:, :-1].argmax(-1)
        chosen[torch.isfinite(logits[:, -1])] = logits.shape[1] - 1
        return functional.one_hot(chosen, logits.shape[1]).float()


@pytest.mark.slow
def test_it_speaks_together_as_it_does_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    for module in (adapter, teachers):
        monkeypatch.setattr(module, "SHORTEST", 1.0)
    teacher = read_teacher("lm-mini", str(resource("models", "lm-mini")), Observer())
    speaker = voice("", "lm-mini")
    with torch.inference_mode():
        together = speak_tokens(
            teacher.network, teacher.layout, teacher.parts.front_end, [speaker], SENTENCES, LikeliestToTheEnd()
        )
    assert len(together) == len(SENTENCES)
    assert all(len(one.phones) == len(one.codes) and one.voice == speaker.id for one in together)
    # The text of the shorter one is filled up with ends, which changes its numbers a little; the longest is alone.
    number = max(range(len(together)), key=lambda place: together[place].frames)
    model = load_model("lm-mini", device="cpu")
    setting = Setting("lm-mini", entry("lm-mini").options_with(temperature=0.0), seed=number)
    ((_, decoding),) = model.decodings(scripted(model, SENTENCES[number], speaker, setting))
    alone = [token for cycle in decoding for token in cycle.tokens]
    assert alone[: together[number].frames] == together[number].codes.tolist()


def test_what_does_not_end_is_left_out(tmp_path: Path) -> None:
    teacher = read_teacher("lm-mini", str(write_model(tmp_path / "model")), Observer())
    told: list[tuple[int, int]] = []
    spoken = speak_tokens(
        teacher.network,
        teacher.folder.layout(),
        teacher.parts.front_end,
        [*voices("lm-mini")[:2]],
        SENTENCES,
        teacher.sampler,
        progress=lambda done, total: told.append((done, total)),
    )
    assert spoken == ()
    assert told == sorted(told) and told[-1] == (2, 2)


def test_it_can_be_cancelled_before_every_token(tmp_path: Path) -> None:
    """Many sentences are spoken at a time, which takes long on a busy machine."""
    teacher = read_teacher("lm-mini", str(write_model(tmp_path / "model")), Observer())
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        speak_tokens(
            teacher.network,
            teacher.folder.layout(),
            teacher.parts.front_end,
            [voice("", "lm-mini")],
            SENTENCES * 4,
            teacher.sampler,
            progress=progress,
        )
    # In the middle of the eight that are spoken together.
    assert {done for done, _ in told} == {0, 1, 2, 3} and len(told) > 8


def utterance(length: int, who: str = "anna") -> SpokenTokens:
    return SpokenTokens(who, np.arange(length, dtype=np.int16), np.arange(length, dtype=np.int16)[::-1] + 1)


def test_tokens_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "tokens.npz"
    written = [utterance(5), utterance(3, "bella"), utterance(8)]
    write_tokens(path, written)
    for found, expected in zip(read_tokens(path), written, strict=True):
        assert found.voice == expected.voice
        assert np.array_equal(found.phones, expected.phones) and np.array_equal(found.codes, expected.codes)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(TrainingError, match=r"tokens\.npz"):
        read_tokens(path)


def test_sequences_are_laid_out_as_the_model_reads_them(tmp_path: Path) -> None:
    layout = read_teacher("lm-mini", str(write_model(tmp_path / "model")), Observer()).folder.layout()
    batch = collate([[utterance(3), utterance(2)], [utterance(4)]], layout)
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 5] * 2
    text, speech = batch.ids[:, :6], batch.ids[:, 6:]
    assert text.tolist() == [[0, 1, 2, 0, 1, END_OF_TEXT], [0, 1, 2, 3, END_OF_TEXT, END_OF_TEXT]]
    codes = [[3, 2, 1, 2, 1], [4, 3, 2, 1]]
    assert speech[0].tolist() == [START_OF_SPEECH, *(FIRST_CODE + code for code in codes[0])]
    assert speech[1, :5].tolist() == [START_OF_SPEECH, *(FIRST_CODE + code for code in codes[1])]
    # Every speech position predicts the next code, the last one the end; text and padding predict nothing.
    assert batch.labels[0].tolist() == [IGNORED] * 6 + [*codes[0], CODES]
    assert batch.labels[1].tolist() == [IGNORED] * 6 + [*codes[1], CODES, IGNORED]
    assert batch.heard.tolist() == [[True] * 12, [True] * 11 + [False]]


def parts_of(folder: LmMiniFolder) -> LmMiniParts:
    nothing = Observer()
    request = LoadRequest(entry("lm-mini"), folder.root, "", torch.device("cpu"), nothing.status, nothing.check)
    return read_parts(request, folder)


def test_phones_and_tokens_are_those_of_the_models_own_tokenizer(tmp_path: Path) -> None:
    folder = LmMiniFolder(write_model(tmp_path / "model"))
    parts, clips = parts_of(folder), toy_corpus(4)
    training, held_out = record_tokens(toy_manifest(tmp_path, clips=4), parts, tmp_path / "speech-of-it")
    assert (len(training), len(held_out)) == (4, 4)
    for one in (*training, *held_out):
        assert len(one.phones) == len(one.codes) > 25
        assert one.codes.min() >= 0 and one.codes.max() < CODES
    first = clips.training[0]
    assert training[0].voice == first.voice
    names = [folder.layout().vocabulary.phones[one] for one in training[0].phones]
    assert set(names) == {phone for phone, _, _ in first.phones}
    frames = {
        id(clip): parts.coding.frames(torch.from_numpy(clip.mel.astype(np.float32))[None])
        for clip in (*clips.training, *clips.held_out)
    }
    own = [frames[id(clip)] for clip in (*clips.training, *clips.held_out) if clip.voice == first.voice]
    expected = parts.coding.codes(frames[id(first)], NaturalVoice.of(torch.cat(own))).numpy()
    # Written as FLAC and read again, a frame may just fall on the other side of a level.
    assert np.mean(training[0].codes == expected) > 0.8
    assert len(token_phones(np.zeros(61, np.int64), 2)) == 30
