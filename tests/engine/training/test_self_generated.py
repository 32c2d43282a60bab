"""What language models learn from: their own speech, and recordings as tokens."""

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
from paretone.models.minis import lm_mini as adapter
from paretone.observer import Observer
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.training import teachers
from paretone.training.requests import Follower
from paretone.training.spoken_tokens import SpokenTokens, collate, read_tokens, write_tokens
from paretone.training.teachers import read_teacher
from tests.engine.small_language import CODES, END_OF_TEXT, FIRST_CODE, START_OF_SPEECH, write_model
from tests.engine.small_natural import write_lm

SENTENCES = ("Rice is good.", "The box was thrown.")


class LikeliestToTheEnd:
    """Always the likeliest code, and the end as soon as speech may end."""

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        chosen = logits[:, :-1].argmax(-1)
        chosen[torch.isfinite(logits[:, -1])] = logits.shape[1] - 1
        return functional.one_hot(chosen, logits.shape[1]).float()


@pytest.mark.slow
def test_it_speaks_together_as_it_does_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    for module in (adapter, teachers):
        monkeypatch.setattr(module, "SHORTEST", 1.0)
    root = str(write_lm(tmp_path))
    teacher = read_teacher("lm-mini", root, Observer())
    speaker = voice("", "lm-mini")
    with torch.inference_mode():
        teacher.sampler = LikeliestToTheEnd()
        together = teacher.speak(SENTENCES, [speaker], 0, "cpu", Follower())
    assert len(together) == len(SENTENCES)
    assert all(len(one.phones) == len(one.codes) and one.voice == speaker.id for one in together)
    # The text of the shorter one is filled up with ends, which changes its numbers a little; the longest is alone.
    number = max(range(len(together)), key=lambda place: together[place].frames)
    model = load_model("lm-mini", folder=root, device="cpu")
    setting = Setting("lm-mini", entry("lm-mini").options_with(temperature=0.0), seed=number)
    ((_, decoding),) = model.decodings(scripted(model, SENTENCES[number], speaker, setting))
    alone = [token for cycle in decoding for token in cycle.tokens]
    assert alone[: together[number].frames] == together[number].codes.tolist()


def test_what_does_not_end_is_left_out_and_it_can_be_cancelled_before_every_token(tmp_path: Path) -> None:
    """Many sentences are spoken at a time, which takes long on a busy machine."""
    teacher = read_teacher("lm-mini", str(write_model(tmp_path / "model")), Observer())
    told: list[tuple[int, int]] = []

    def speak(sentences: Sequence[str], last: int) -> tuple[SpokenTokens, ...]:
        class Telling(Follower):
            def progress(self, done: int, total: int) -> None:
                told.append((done, total))
                if done == last:
                    raise Cancelled

        return teacher.speak(sentences, voices("lm-mini")[:2], 0, "cpu", Telling())

    assert speak(SENTENCES, last=99) == ()
    assert told == sorted(told) and told[-1] == (2, 2)
    told.clear()
    with pytest.raises(Cancelled):
        speak(SENTENCES * 4, last=3)
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
