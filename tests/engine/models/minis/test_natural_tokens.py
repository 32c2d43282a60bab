"""Language and masked models of natural speech, small ones as their recipes export them, from text to audio."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.audio.cross_fade import faded_after
from paretone.errors import CheckpointError, TextError
from paretone.front_end.phones import PHONES, PhoneVocabulary, labels
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.models import load_model
from paretone.models.base import Synthesis, Voice
from paretone.models.catalogue import entry
from paretone.models.minis.lm_mini import SPARE, LmMiniSpeech
from paretone.models.minis.natural_decoder import FORMANT, HOP, PITCH
from paretone.models.minis.omni_mini import OmniMiniSpeech
from paretone.models.minis.speaking import LAYOUT_FILE, NOBODY
from paretone.models.networks.quantised_mel import token_phones
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import applying_to
from tests.engine.recorder import collected
from tests.engine.small_natural import CODEBOOKS, CODES, write_lm, write_named, write_omni, write_recording
from tests.engine.small_vocos import write_vocos
from tests.engine.speaking import stream
from tests.same_sound import assert_same_sound

TEXT = "Is it 5:30 already?"
Speech = LmMiniSpeech | OmniMiniSpeech


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> LmMiniSpeech:
    return load_model("lm-mini", folder=str(write_lm(tmp_path_factory.mktemp("natural"))), device="cpu")


@pytest.fixture(scope="module")
def omni(tmp_path_factory: pytest.TempPathFactory) -> OmniMiniSpeech:
    return load_model("omni-mini", folder=str(write_omni(tmp_path_factory.mktemp("natural"))), device="cpu")


@pytest.fixture(params=["lm", "omni"])
def model(request: pytest.FixtureRequest) -> Speech:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def anna(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    return write_named(tmp_path_factory.mktemp("voices"))


def setting(model: Speech, seed: int = 0, **options: object) -> Setting:
    few = {"steps": 4} if isinstance(model, OmniMiniSpeech) else {}
    return Setting(model.info.id, entry(model.info.id).options_with(**{"speed": 2.0, **few, **options}), seed=seed)


def spoken(model: Speech, chosen: Setting, speaker: Voice, text: str = TEXT) -> Synthesis:
    return synthesise(model, text, speaker, chosen)


def test_a_masked_take_lasts_as_long_as_its_phones(omni: OmniMiniSpeech, anna: Voice):
    take = spoken(omni, setting(omni, seed=3), anna)
    (piece,), _ = NaturalReader().pieces(TEXT, HowToRead(speed=2.0, seed=3))
    (passage,) = take.trace.demasking.passages
    # Whole tokens, as in the speech that the network learnt from.
    assert passage.codes.shape == (CODEBOOKS, piece.latent_frames // 4)
    assert len(take.samples) == passage.codes.shape[1] * 4 * HOP
    assert np.isfinite(take.samples).all()
    assert take.trace.mel.shape == (len(take.samples) // 256 + 1, 100)


def test_a_language_model_is_given_a_phone_for_every_token(lm: LmMiniSpeech, anna: Voice):
    prompt, passages = lm.prepare(TEXT, anna, setting(lm).options, lambda: None, 3)
    (passage,) = passages.passages
    (piece,), _ = NaturalReader().pieces(TEXT, HowToRead(speed=2.0, seed=3))
    by_frame = labels(piece.phones, piece.latent_frames, PhoneVocabulary(PHONES), hop=HOP)
    assert passage.phones.tolist() == token_phones(by_frame, 2).tolist()
    assert len(prompt.phones) == len(prompt.codes) == int(anna.phones[-1][2] * 40)
    assert max(prompt.codes) < CODES
    take = spoken(lm, setting(lm, seed=3), anna)
    assert 0 < take.measurements.tokens <= passage.expected + SPARE
    assert len(take.samples) == take.measurements.tokens * 2 * HOP


def test_what_comes_in_pieces_is_what_is_made_at_once(model: Speech, anna: Voice):
    text = "Good morning, everybody."
    pieces, take = collected(stream(model, text, anna, setting(model)))
    assert np.array_equal(np.concatenate([one.samples for one in pieces]), take.samples)
    prompt = model.front_end.prompt(anna)
    if isinstance(model, LmMiniSpeech):
        tokens = [token for cycle in take.trace.decoding.passages[0] for token in cycle.tokens]
        whole = model.decoder(prompt, 0, Values()).whole(tokens)
        assert len(pieces) > 1
    else:
        whole = model.decoder(prompt, Values()).whole(torch.from_numpy(take.trace.demasking.passages[0].codes).long())
    assert_same_sound(take.samples, faded_after(whole.samples, end_of(model, setting(model), anna, text)))
    assert np.abs(take.samples).max() > 0.01


def end_of(model: Speech, chosen: Setting, speaker: Voice, text: str = TEXT) -> int:
    """Sample at which the last sound of ``text`` is over."""
    _, passages = model.prepare(text, speaker, chosen.options, lambda: None, chosen.seed)
    return passages.passages[0].end


@pytest.mark.parametrize("sizes", [(30,), (11, 1, 18)])
def test_streams_give_what_decoding_at_once_gives(lm: LmMiniSpeech, omni: OmniMiniSpeech, sizes: tuple[int, ...]):
    draw = torch.Generator().manual_seed(len(sizes))
    for coding, codes in (
        (lm.coding, torch.randint(CODES, (sum(sizes),), generator=draw)),
        (omni.coding, torch.randint(12, (sum(sizes), CODEBOOKS), generator=draw)),
    ):
        streamed = coding.stream(NOBODY)
        pieces = [streamed.push(one) for one in codes.split(sizes)]
        joined, whole = np.concatenate([*pieces, streamed.push(codes[:0], last=True)]), streamed.whole(codes)
        assert len(joined) == len(whole.samples) == len(codes) * coding.stride * HOP
        assert_same_sound(joined, whole.samples)
        assert np.abs(streamed.mel - whole.mel).max() < 0.05


def test_voices_that_take_turns_are_read_once_each(model: Speech, anna: Voice, tmp_path: Path):
    both = anna, write_named(tmp_path)
    first, again = ([model.front_end.prompt(one) for one in both] for _ in range(2))
    assert first[0] is again[0] is not first[1] is again[1]


def test_a_seed_gives_the_same_bits_and_a_pace_of_its_own(model: Speech, anna: Voice):
    first, again, other = (spoken(model, setting(model, seed), anna, "Go on.").samples for seed in (5, 5, 7))
    assert np.array_equal(first, again) and len(other) != len(first)


def test_the_prompt_says_who_speaks(model: Speech, anna: Voice, tmp_path: Path):
    coding, own = model.coding, write_recording(tmp_path / "own.wav")
    who = [model.front_end.prompt(one).who for one in (anna, own)]
    assert who[0] != who[1]
    # Who speaks is added to what is said, and taken from it again.
    codes = torch.zeros(20, *([CODEBOOKS] if isinstance(model, OmniMiniSpeech) else []), dtype=torch.long)
    said = coding.codec.decode(codes[None], torch.zeros(1, 34))[0]
    frames = [one.frames(said) for one in who]
    assert torch.allclose(frames[1][:, PITCH] - frames[0][:, PITCH], torch.tensor(who[1].pitch - who[0].pitch))
    assert frames[0][0, FORMANT] == pytest.approx(who[0].formant)
    assert torch.allclose(who[1].said(frames[1]), said, atol=1e-6)
    takes = [coding.stream(one).whole(codes).samples for one in who]
    assert np.abs(takes[0] - takes[1]).max() > 0.1 * np.abs(takes[0]).max()


@pytest.mark.parametrize("text", ["…", "Это не английский текст, его нельзя прочитать."])
def test_what_cannot_be_read_is_refused(model: Speech, anna: Voice, text: str):
    with pytest.raises(TextError):
        spoken(model, setting(model), anna, text)


def test_blocks_are_heard_before_the_canvas_is_full(omni: OmniMiniSpeech, anna: Voice):
    blocks = setting(omni, speed=1.0).with_technique(UsedTechnique("blockwise", Values()))
    text = "The juice of lemons makes fine punch."
    pieces, take = collected(stream(omni, text, anna, blocks))
    (passage,) = take.trace.demasking.passages
    assert len(passage.blocks) > 1 and len(pieces) > 1
    decoder, heard = omni.decoder(omni.front_end.prompt(anna), Values()), [one.samples for one in pieces]
    whole = decoder.whole(torch.from_numpy(passage.codes).long()).samples
    assert_same_sound(np.concatenate(heard), faded_after(whole, end_of(omni, blocks, anna, text)))
    assert take.measurements.first_audio_seconds < take.measurements.seconds


def test_every_technique_speaks(model: Speech, anna: Voice):
    """But for those that need weights or groups which have not been made here, a graphics card, or minutes."""
    plain = setting(model)
    for one in applying_to(model.info.family, model.info.knobs):
        if one.name in ("compilation", "graphs", "speculative", "spade", "token_groups"):
            continue
        knobs = defaults(one.knobs)
        if "anyway" in knobs:
            knobs = knobs.replace(anyway=True)
        take = spoken(model, plain.with_technique(UsedTechnique(one.name, knobs)), anna, "Go.")
        assert np.isfinite(take.samples).all() and len(take.samples) > 2_000, one.title


def test_another_vocoder_and_an_earlier_version_are_refused(model: Speech, tmp_path: Path):
    name = model.info.id
    alone = shutil.copytree(Path(model.info.checkpoint).parent, tmp_path / name)
    write_vocos(tmp_path / entry(name).vocoder)
    with pytest.raises(CheckpointError, match="put that of natural speech there"):
        load_model(name, folder=str(alone), device="cpu")
    layout = json.loads((alone / LAYOUT_FILE).read_text(encoding="utf-8"))
    (alone / LAYOUT_FILE).write_text(json.dumps({**layout, "phones": "pau aa ae"}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="earlier version of Paretone"):
        load_model(name, folder=str(alone), device="cpu")
