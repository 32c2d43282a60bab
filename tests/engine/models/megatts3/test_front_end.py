from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import AudioError, Cancelled, TextError
from paretone.files import wav
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.duration_model import Tempo
from paretone.models.megatts3.front_end import OfficialFrontEnd
from paretone.models.megatts3.passages import MegaPassage, Timed
from tests.engine.models.megatts3.small_grapheme_model import FIRST, write_folder
from tests.engine.models.megatts3.small_release import write_release
from tests.packages import needs

pytestmark = [needs("transformers"), pytest.mark.slow]  # Importing transformers takes seconds.

TEXT = "this clause has quite a few words in it, " * 4 + "and so has this one."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> OfficialFolder:
    root = tmp_path_factory.mktemp("release")
    write_release(root)
    write_folder(root / "g2p")
    return OfficialFolder(root)


@pytest.fixture
def front_end(folder: OfficialFolder, monkeypatch: pytest.MonkeyPatch) -> OfficialFrontEnd:
    monkeypatch.setattr(graphemes, "LONGEST", 12)
    return OfficialFrontEnd.load(folder, folder.wavvae())


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    audio = tmp_path / "voice.wav"
    random = np.random.default_rng(0)
    audio.write_bytes(wav((random.standard_normal(40000) * 0.1).astype(np.float32), 24000))
    np.save(audio.with_suffix(".npy"), random.standard_normal((1, 55, 32)).astype(np.float32))
    return audio


def test_a_prompt_is_as_long_as_its_latents(front_end: OfficialFrontEnd, voice: Path) -> None:
    prompt = front_end.prompt(voice)
    # 40000 samples, filled up to 40799, and 12000 more: 220 frames, 216 in eights.
    assert (prompt.frames, prompt.spoken.frames) == (54, 216)
    assert prompt.latents.shape == (1, prompt.frames, 32)
    assert prompt.seconds == pytest.approx(40000 / 24000)


def test_every_segment_follows_the_prompt(front_end: OfficialFrontEnd, voice: Path) -> None:
    prompt = front_end.prompt(voice)
    made = front_end.passages(TEXT, voice)
    assert [passage.text for passage in made.passages] == [TEXT[:122], TEXT[123:]]
    for passage in made.passages:
        assert passage.mel2ph.shape == (1, 4 * passage.frames)
        assert passage.phones.shape == passage.tones.shape
        assert int(passage.mel2ph.max()) == passage.phones.shape[1]
        assert (passage.mel2ph.diff() >= 0).all()
        heard = len(prompt.spoken.phones)
        assert passage.phones[0, :heard].tolist() == list(prompt.spoken.phones)
        assert passage.phones[0, heard] == 145
        # The target begins where the prompt's latents end.
        assert (passage.mel2ph[0, : 4 * prompt.frames] <= heard).all()
        assert passage.mel2ph[0, 4 * prompt.frames] > heard
        assert passage.frames > prompt.frames
    # The very first silence is short.
    first = made.passages[0].mel2ph[0, 4 * prompt.frames :]
    assert int((first == len(prompt.spoken.phones) + 1).sum()) == 8


def test_the_backbone_takes_what_the_front_end_makes(
    front_end: OfficialFrontEnd, folder: OfficialFolder, voice: Path
) -> None:
    prompt = front_end.prompt(voice)
    passage = front_end.passages("Hello.", voice).passages[0]
    backbone, wavvae = folder.backbone(), folder.wavvae()
    context = torch.nn.functional.pad(prompt.latents, (0, 0, 0, passage.frames - prompt.frames))
    is_prompt = (torch.arange(passage.frames) < prompt.frames)[None]
    with torch.inference_mode():
        run = backbone.begin(context, is_prompt, passage.phones, passage.tones, passage.mel2ph, np.array([0.0]))
        velocities = backbone.velocity(torch.randn(1, passage.frames, 32), 0, run)
    assert velocities.shape == (3, passage.frames, 32)
    assert velocities.isfinite().all()
    samples = wavvae.decode(velocities[:1], prompt.frames)
    assert samples.shape == (1, 960 * (passage.frames - prompt.frames))


def test_equal_requests_are_equal_and_a_disturbance_follows_its_seed(front_end: OfficialFrontEnd, voice: Path) -> None:
    def frames(seed: int, disturbance: float = 0.0) -> list[list[int]]:
        made = front_end.passages(TEXT, voice, Tempo(disturbance=disturbance), seed)
        return [passage.mel2ph[0].tolist() for passage in made.passages]

    assert frames(1) == frames(2)
    assert frames(1, 0.5) == frames(1, 0.5)
    assert frames(1, 0.5) != frames(2, 0.5)


def test_segments_and_voices_are_remembered_until_a_file_changes(
    front_end: OfficialFrontEnd, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = front_end.prompt(voice)
    made = front_end.passages("Hello.", voice)
    with monkeypatch.context() as patch:
        for part in (front_end._graphemes, front_end._aligner):
            patch.setattr(type(part), "__call__" if part is front_end._graphemes else "align", None)
        assert front_end.prompt(voice) is first
        again = front_end.passages("Hello.", voice)
        assert torch.equal(again.passages[0].mel2ph, made.passages[0].mel2ph)
    os.utime(voice.with_suffix(".npy"), ns=(1, 1))
    assert front_end.prompt(voice) is not first


def test_what_was_not_read_to_its_end_is_said(front_end: OfficialFrontEnd, voice: Path) -> None:
    assert any("did not finish reading “hello" in note.lower() for note in front_end.passages("Hello.", voice).notes)


def test_sounds_without_a_phone_are_counted(front_end: OfficialFrontEnd, voice: Path) -> None:
    head = front_end._graphemes._model.lm_head.weight
    with torch.no_grad():  # English phones, and numbers that no phone has, remain likely.
        head[: FIRST + 101] = 0
        head[FIRST + 145 : FIRST + 174] = 0
        head[FIRST + 200 : FIRST + 789] = 0
        head[FIRST + graphemes.END] = 0
    read = front_end._graphemes("hello.")
    notes = front_end.passages("Hello.", voice).notes
    assert 1 < read.unknown < len(read.phones)
    assert any(f"no phones for {read.unknown} sounds of “hello.”" in note for note in notes)


def test_errors_of_parts_come_through_and_cancelling_works(front_end: OfficialFrontEnd, voice: Path) -> None:
    def cancel() -> None:
        raise Cancelled

    with pytest.raises(TextError):
        front_end.passages("", voice)
    with pytest.raises(Cancelled):
        front_end.passages("Hello.", voice, check=cancel)
    voice.with_suffix(".npy").unlink()
    with pytest.raises(AudioError, match="no encoder"):
        front_end.prompt(voice)


def test_a_last_latent_that_is_not_full_is_left_out() -> None:
    passage = MegaPassage.of("", Timed((145,), (3,), (8,)), Timed((101, 5), (3, 16), (3, 4)))
    assert passage.frames == 3
    assert passage.mel2ph.tolist() == [[1] * 8 + [2] * 3 + [3]]
    assert passage.tones.tolist() == [[3, 3, 3]]
