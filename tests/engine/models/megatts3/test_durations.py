"""Durations: predicted, settled, and aligned to a recording."""

import math

import pytest
import torch

from paretone.errors import AudioError, Cancelled, CheckpointError
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.aligner import END, START, Aligner, AlignerConfig, log_mel, read_alignment
from paretone.models.megatts3.duration_model import DurationConfig, DurationModel, Tempo, settled_durations
from paretone.models.megatts3.phones import Timed, phone_number
from tests.engine.models.megatts3.small_release import DURATION_CONFIG, SMALL_ALIGNER, random_weights, shapes_of
from tests.engine.recorder import Follower

PHONES = torch.tensor([[145, 101, 120, 130, 163, 110]])
TONES = torch.full_like(PHONES, 3)
DURATIONS = torch.tensor([[20, 7, 9, 0, 30, 400]])


def model(**entries: object) -> DurationModel:
    made = DurationModel(DurationConfig.read(ConfigFile(DURATION_CONFIG | entries, "small"), 174))
    weights = {name: value * 4 for name, value in random_weights(shapes_of(made)).items()}
    if made.config.regression:  # Durations of some tens of frames, that vary.
        weights["project_out_dim.0.weight"] *= 20
        weights["project_out_dim.0.bias"] += 60
    made.load_state_dict(weights)
    return made.eval().requires_grad_(False)


def one_by_one(
    made: DurationModel, prompt_phones: torch.Tensor, durations: torch.Tensor, phones: torch.Tensor
) -> list[int]:
    """As upstream, without what is kept between phones: everything so far is evaluated again for every phone."""
    prompt = made.read_text(prompt_phones, torch.full_like(prompt_phones, 3))
    text = torch.cat([prompt, made.read_text(phones, torch.full_like(phones, 3))], 1)
    codes = [made.config.codes + 1, *(durations.clamp(max=127) + 1)[0].tolist()]
    while len(codes) <= text.shape[1]:
        outputs, _ = made(torch.tensor([codes]), text[:, : len(codes)])
        last = outputs[0, -1]
        code = round(last.item()) if made.config.regression else int(last.argmax())
        codes.append(min(max(code, 0 if len(codes) == prompt.shape[1] + 1 else 1), 128))
    return codes[prompt.shape[1] + 1 :]


@pytest.mark.parametrize("kind", ["ar_mse", "classification"])
def test_codes_equal_those_without_anything_kept(kind: str) -> None:
    made = model(dur_model_type=kind)
    phones = torch.tensor([[145, 105, 111, 122, 148]])
    with torch.inference_mode():
        expected = one_by_one(made, PHONES, DURATIONS, phones)
    prompt = made.read_prompt(PHONES, TONES, DURATIONS)
    assert made.predict(prompt, phones, torch.full_like(phones, 3)) == expected
    assert len(set(expected)) > 1
    # The prompt is as it was: the next segment begins there as well.
    assert made.predict(prompt, phones, torch.full_like(phones, 3)) == expected


def test_codes_stay_in_the_table() -> None:
    made = model()
    with torch.no_grad():
        made.project_out_dim[0].bias.fill_(1e6)
    prompt = made.read_prompt(PHONES, TONES, DURATIONS)
    assert prompt.last == 128
    assert made.predict(prompt, PHONES, TONES) == [128] * 6
    with torch.no_grad():
        made.project_out_dim[0].bias.fill_(-1e6)
    assert made.predict(prompt, PHONES, TONES) == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"dur_code_size": None}, "lacks 'dur_code_size'"),
        ({"use_rot_embed": False}, "use_rot_embed"),
        ({"ling_labels": ["tone", "prosody"], "ling_label_dict_size": [20, 5]}, "ling_labels"),
        ({"ling_label_dict_size": [10]}, "174 phones and 13 tones"),
        ({"num_heads": 3}, "multiple of num_heads"),
        ({"dur_model_hidden_size": 40}, "dur_model_hidden_size of 16"),
    ],
)
def test_configurations_that_cannot_be_used_are_named(entries: dict, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        model(**entries)


SPOKEN = phone_number("E0aa")
COMMA, STOP, SILENCE = phone_number("，"), phone_number("。"), phone_number("sil")


def settle(codes: list[int], phones: list[int], seed: int = 0, **how: object) -> list[int]:
    how = {"is_first": False, "is_last": False, "tempo": Tempo()} | how
    return settled_durations(codes, phones, 128, **how, generator=torch.Generator().manual_seed(seed))


def test_a_seam_is_longer_and_the_very_end_is_bounded() -> None:
    assert settle([9, 9], [SPOKEN] * 2) == [8, 8 + 32]
    assert settle([9, 9], [SPOKEN] * 2, is_last=True) == [8, 64]
    assert settle([9, 129], [SPOKEN] * 2, is_last=True) == [8, 127 + 1]


def test_pauses_have_a_least_length_and_the_first_silence_a_fixed_one() -> None:
    assert settle([5, 5, 5, 41], [SILENCE, COMMA, STOP, SPOKEN]) == [64, 32, 64, 40 + 32]
    assert settle([5, 5, 5, 41], [SILENCE, COMMA, STOP, SPOKEN], is_first=True) == [8, 32, 64, 72]
    assert settle([101, 41], [STOP, SPOKEN]) == [100, 40 + 32 + 4]


def test_stretching_comes_before_the_rules_of_pauses_and_rounds_half_to_even() -> None:
    assert settle([6, 4, 41], [SPOKEN, SPOKEN, SPOKEN], tempo=Tempo(0.5)) == [2, 2, 36]
    assert settle([65, 41], [STOP, SPOKEN], tempo=Tempo(0.5)) == [64, 40]
    assert settle([101, 17], [SPOKEN, SPOKEN], tempo=Tempo(2.0)) == [127, 96 + 1]


def test_no_disturbance_by_default_and_with_one_a_seed_repeats_it() -> None:
    codes, phones = [61] * 40, [SPOKEN] * 40
    assert settle(codes, phones, seed=1) == settle(codes, phones, seed=2)
    disturbed = settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=1)
    assert disturbed == settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=1)
    assert disturbed != settle(codes, phones, tempo=Tempo(disturbance=0.1), seed=2)
    inner = disturbed[:-1]
    assert 54 <= min(inner) < 60 < max(inner) <= 66


@pytest.fixture(scope="module")
def aligner() -> Aligner:
    return Aligner.from_official(random_weights(shapes_of(Aligner(SMALL_ALIGNER))), "small")


def tone(seconds: float) -> torch.Tensor:
    return 0.3 * torch.sin(torch.arange(int(16000 * seconds)) * 2 * math.pi * 440 / 16000)


def test_tokens_become_phones_tones_and_durations() -> None:
    # E0aa until 5, a Chinese phone with its second tone until 9, silence until 16.
    assert read_alignment([101, 805, 208, 809, 145, 816], 16) == Timed((101, 4, 145), (3, 11, 3), (5, 4, 7))


@pytest.mark.parametrize("tokens", [[101, 1750, 102, 1751], [101, 800, 102, 900]])
def test_no_duration_becomes_negative(tokens: list[int]) -> None:
    alignment = read_alignment(tokens, 8)
    assert min(alignment.durations) >= 0
    assert alignment.frames == 8


def test_no_phone_at_all_is_the_recordings_fault() -> None:
    with pytest.raises(AudioError, match="No speech was found"):
        read_alignment([], 8)


def test_a_recording_too_short_or_too_long_is_refused(aligner: Aligner) -> None:
    with pytest.raises(AudioError, match=r"lasts 0\.05 s"):
        log_mel(tone(0.05))
    with pytest.raises(AudioError, match="cut it to 8 s"):
        aligner.tokens(torch.zeros(1, 80, 808))


def test_decoding_stops_at_the_limit_or_at_the_end_token(aligner: Aligner) -> None:
    mel = log_mel(tone(1.0))
    found = aligner.tokens(mel, 10)
    assert found[0] == START
    assert len(found) == 11 or found[-1] == END
    ending = Aligner.from_official(aligner.state_dict(), "small")
    with torch.no_grad():
        ending.decoder.out_proj.bias[END] = 1e4
    assert ending.tokens(mel, 10) == [START, END]


def test_decoding_can_be_cancelled(aligner: Aligner) -> None:
    follower = Follower(cancel_at=3)
    with pytest.raises(Cancelled):
        aligner.tokens(log_mel(tone(1.0)), 50, follower.check)
    assert follower.checks == 3


def test_sizes_come_from_the_weights_and_foreign_weights_are_named() -> None:
    weights = random_weights(shapes_of(Aligner(SMALL_ALIGNER)))
    assert AlignerConfig.of_weights(weights, "small") == SMALL_ALIGNER
    del weights["decoder.out_proj.bias"]
    with pytest.raises(CheckpointError, match=r"decoder\.out_proj\.bias"):
        Aligner.from_official(weights, "small")
