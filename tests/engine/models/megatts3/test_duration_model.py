from __future__ import annotations

import pytest
import torch

from paretone.errors import Cancelled, CheckpointError, TextError
from paretone.models.files.config_file import ConfigFile
from paretone.models.megatts3.duration_model import DurationConfig, DurationModel, rotated
from tests.engine.models.megatts3.small_release import DURATION_CONFIG, random_weights, shapes_of

PHONES = torch.tensor([[145, 101, 120, 130, 163, 110]])
TONES = torch.full_like(PHONES, 3)
DURATIONS = torch.tensor([[20, 7, 9, 0, 30, 400]])


def model(**entries: object) -> DurationModel:
    config = DurationConfig.of_entries(ConfigFile(DURATION_CONFIG | entries, "small"), 174)
    made = DurationModel(config)
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
    codes = [made.start_code, *(durations.clamp(max=127) + 1)[0].tolist()]
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


def test_padding_is_not_spoken() -> None:
    made = model()
    padded = torch.cat([PHONES, torch.zeros(1, 2, dtype=torch.long)], 1)
    tones = torch.cat([TONES, torch.zeros(1, 2, dtype=torch.long)], 1)
    assert made.read_text(padded, tones).shape[1] == 6
    with pytest.raises(TextError, match="no phones"):
        made.read_prompt(torch.zeros_like(PHONES), TONES, DURATIONS)


def test_the_product_of_rotated_vectors_depends_on_their_distance() -> None:
    query, key = (torch.randn((1, 1, 1, 8), generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    near, far = ((rotated(query, start + 3) * rotated(key, start)).sum() for start in (0, 500))
    assert near == pytest.approx(far.item(), abs=1e-4)
    assert near != pytest.approx((rotated(query, 4) * rotated(key, 0)).sum().item(), abs=1e-4)


def test_prediction_can_be_cancelled() -> None:
    def check() -> None:
        raise Cancelled

    made = model()
    with pytest.raises(Cancelled):
        made.predict(made.read_prompt(PHONES, TONES, DURATIONS), PHONES, TONES, check)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"dur_code_size": None}, "lacks 'dur_code_size'"),
        ({"dur_model_layers": 0}, "dur_model_layers should be a positive whole number"),
        ({"use_rot_embed": False}, "use_rot_embed"),
        ({"use_post_ln": True, "use_spk_enc": True}, "use_post_ln, use_spk_enc"),
        ({"ling_labels": ["tone", "prosody"], "ling_label_dict_size": [20, 5]}, "ling_labels"),
        ({"encoder_type": "conformer"}, "encoder_type"),
        ({"ling_label_dict_size": [10]}, "174 phones and 13 tones"),
        ({"num_heads": 3}, "multiple of num_heads"),
        ({"dur_model_hidden_size": 40}, "dur_model_hidden_size of 16"),
    ],
)
def test_configurations_that_cannot_be_used_are_named(entries: dict, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        model(**entries)
