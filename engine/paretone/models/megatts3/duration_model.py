"""Duration language model: phone durations of a text in the style of a prompt's speaker.

Official layout (``tts/modules/ar_dur/ar_dur_predictor.py``, ``rot_transformer.py``). A code is a duration in frames of
10 ms plus one. The prompt's codes are read at once, while upstream reads them one by one; keys are cached rotated,
while upstream rotates all of them at every step. Both give the same codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.errors import CheckpointError, TextError
from paretone.models.files.checkpoints import loaded_strictly, shapes_of
from paretone.models.files.config_file import ConfigFile, WeightShapes
from paretone.models.megatts3.phones import PHONES, TONES, PhoneEncoder, phone_number
from paretone.models.networks.causal import rotate
from paretone.models.networks.layers import sinusoids, split_heads
from paretone.models.networks.shapes import Modules
from paretone.observer import Check

HEADS = 8
"""Heads of the decoder, hard-coded upstream."""
ROTARY_BASE = 10000
RESERVED_TONES = 3
"""Rows of the tone table beyond the configured number."""
REGRESSION = "ar_mse"
UNUSED = ("char_encoder.", "bert_input_proj.")
"""Weights of inputs that upstream does not use in synthesis."""


@dataclass(frozen=True)
class DurationConfig:
    """Sizes, from ``duration_lm/config.yaml``."""

    text_width: int
    width: int
    layers: int
    codes: int
    """Upper limit of durations, exclusive."""
    phones: int
    """Rows of the phone table."""
    tones: int
    """Rows of the tone table."""
    encoder_layers: int
    encoder_heads: int
    encoder_hidden: int
    encoder_kernel: int
    regression: bool
    """Whether durations are regressed; otherwise all codes are scored."""
    bias: bool = True

    @classmethod
    def read(cls, file: ConfigFile, phones: int) -> DurationConfig:
        """Read a ``config.yaml``; ``phones`` is the number of rows of the phone table. Raises :class:`CheckpointError`
        for missing entries, and for options with an unknown structure."""
        kind = file.text("dur_model_type")
        labels, sizes = file.texts("ling_labels"), file.numbers("ling_label_dict_size")
        needed = {
            "use_rot_embed": True,
            "lm_use_enc": True,
            "enc_prenet": True,
            "enc_pre_ln": True,
            "use_ph_pos_embed": True,
            "use_pos_embed": False,
            "use_post_ln": False,
            "use_spk_embed": False,
            "use_spk_id": False,
            "use_spk_enc": False,
        }
        other = [name for name, value in needed.items() if file.flag(name, value) is not value]
        if file.text("encoder_type", "rel_fft") != "rel_fft":
            other.append("encoder_type")
        if labels != ("tone",) or len(sizes) != 1:
            other.append("ling_labels")
        if other:
            raise CheckpointError(
                f"{file.where}: a duration model with these values of {', '.join(other)} is not supported; "
                "use the released duration_lm."
            )
        config = cls(
            text_width=file.number("dur_txt_hs"),
            width=file.number("dur_model_hidden_size"),
            layers=file.number("dur_model_layers"),
            codes=file.number("dur_code_size"),
            phones=phones,
            tones=sizes[0] + RESERVED_TONES,
            encoder_layers=file.number("enc_layers"),
            encoder_heads=file.number("num_heads"),
            encoder_hidden=file.number("ffn_hidden_size"),
            encoder_kernel=file.number("enc_ffn_kernel_size"),
            regression=kind == REGRESSION,
            bias=file.flag("lm_bias", True),
        )
        if config.phones < len(PHONES) or config.tones < len(TONES):
            raise CheckpointError(
                f"{file.where}: a duration model for {config.phones} phones and {config.tones} tones does not know all "
                f"{len(PHONES)} and {len(TONES)} of MegaTTS 3."
            )
        if config.text_width % config.encoder_heads or config.width % (2 * HEADS):
            raise CheckpointError(
                f"{file.where}: dur_txt_hs must be a multiple of num_heads, and dur_model_hidden_size of {2 * HEADS}."
            )
        return config


@dataclass(frozen=True)
class Past:
    """Cache of one layer for the phones so far: rotated keys, and values, both (1, heads, n, width / heads)."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class DurationPrompt:
    """A prompt after reading: every layer's past, and the last code."""

    past: tuple[Past, ...]
    last: int


class RotaryAttention(nn.Module):
    """Causal self-attention without biases, with rotary positions whose pairs lie half a head apart."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """(1, n, width) to the same shape; n is one if there is a past."""
        start = past.keys.shape[2] if past else 0
        query, key, value = (
            split_heads(part, HEADS) for part in functional.linear(x, self.in_proj_weight).chunk(3, -1)
        )
        query, key = rotated(query, start), rotated(key, start)
        if past:
            key, value = torch.cat([past.keys, key], 2), torch.cat([past.values, value], 2)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        return self.out_proj(found.transpose(1, 2).flatten(2)), Past(key, value)


def rotated(x: Tensor, start: int) -> Tensor:
    """(…, n, size) rotated to positions ``start``, ``start`` + 1 … (Su et al., arXiv 2104.09864)."""
    count, size = x.shape[-2:]
    rates = ROTARY_BASE ** -(torch.arange(0, size, 2, device=x.device).float() / size)
    angles = torch.arange(start, start + count, device=x.device)[:, None] * rates
    cosine, sine = (torch.cat([part, part], -1).to(x.dtype) for part in (angles.cos(), angles.sin()))
    return rotate(x, (cosine, sine))


class DurationFeedForward(nn.Module):
    """Two linear layers; the first is stored as a convolution over one phone."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.ffn_1 = nn.Sequential(nn.Identity(), nn.Conv1d(width, 4 * width, 1, bias=bias))
        self.ffn_2 = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, width) to the same shape."""
        return self.ffn_2(functional.gelu(self.ffn_1(x.transpose(1, 2)).transpose(1, 2)))


class DecoderLayer(nn.Module):
    """Attention and feed-forward, each after a norm and with a residual connection."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(width)
        self.self_attn = RotaryAttention(width)
        self.layer_norm2 = nn.LayerNorm(width)
        self.ffn = DurationFeedForward(width, bias)

    def forward(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """(1, n, width) to the same shape, and the past including these n phones."""
        found, past = self.self_attn(self.layer_norm1(x), past)
        x = x + found
        return x + self.ffn(self.layer_norm2(x)), past


class DurationModel(nn.Module):
    """The complete model. Inputs are official phone and tone numbers."""

    def __init__(self, config: DurationConfig) -> None:
        super().__init__()
        self.config = config
        sizes = config.encoder_layers, config.encoder_heads, config.encoder_hidden, config.encoder_kernel
        self.encoder = PhoneEncoder(config.phones, config.text_width, *sizes)
        self.char_empty_embed = nn.Embedding(1, config.text_width)
        self.ling_label_embed_layers = nn.ModuleDict({"tone": nn.Embedding(config.tones, config.text_width)})
        self.enc_proj = nn.Linear(config.text_width, config.width)
        self.code_emb = nn.Embedding(config.codes + 2, config.width)
        layers = (DecoderLayer(config.width, config.bias) for _ in range(config.layers))
        self.layers = Modules(nn.ModuleDict({"op": layer}) for layer in layers)
        self.layer_norm = nn.LayerNorm(config.width)
        project_out: nn.Module
        if config.regression:
            project_out = nn.Sequential(nn.Linear(config.width, 1), nn.Softplus())
        else:
            project_out = nn.Linear(config.width, config.codes + 1)
        self.project_out_dim = project_out

    def read_text(self, phones: Tensor, tones: Tensor) -> Tensor:
        """Decoder input of a text: (1, n) numbers to (1, n, width), without padding phones."""
        present = phones > 0
        tone = self.ling_label_embed_layers["tone"](tones)
        places = sinusoids(torch.arange(phones.shape[1], device=phones.device).float(), self.config.text_width)
        encoded = self.encoder(phones, (tone + places) * present[..., None])
        return self.enc_proj(encoded[present][None])

    def forward(
        self, codes: Tensor, text: Tensor, past: Sequence[Past] | None = None
    ) -> tuple[Tensor, tuple[Past, ...]]:
        """Outputs (1, n, 1), or scores (1, n, codes + 1), from the ``codes`` (1, n) of the preceding phones and the
        ``text`` (1, n, width) of the phones themselves; and every layer's past. With a past n must be one."""
        x = self.code_emb(codes) + text
        kept = []
        for place, layer in enumerate(self.layers):
            x, now = layer["op"](x, past[place] if past else None)
            kept.append(now)
        return self.project_out_dim(self.layer_norm(x)), tuple(kept)

    @torch.inference_mode()
    def read_prompt(self, phones: Tensor, tones: Tensor, durations: Tensor) -> DurationPrompt:
        """Read a prompt's phones, tones and durations in frames, all (1, n)."""
        codes = (durations.clamp(max=self.config.codes - 1) + 1)[phones > 0][None]
        if not codes.numel():
            raise TextError("The reference recording has no phones; choose one of clear speech.")
        before = functional.pad(codes[:, :-1], (1, 0), value=self.config.codes + 1)
        _, past = self(before, self.read_text(phones, tones))
        return DurationPrompt(past, int(codes[0, -1]))

    @torch.inference_mode()
    def predict(self, prompt: DurationPrompt, phones: Tensor, tones: Tensor, check: Check = lambda: None) -> list[int]:
        """Greedy codes of a text's phones, (1, n) each. ``check`` is called per phone and may raise to cancel."""
        text = self.read_text(phones, tones)
        past, codes = prompt.past, [prompt.last]
        for place in range(text.shape[1]):
            check()
            before = torch.tensor([codes[-1:]], device=text.device)
            output, past = self(before, text[:, place : place + 1], past)
            code = int(output[0, 0, 0].round()) if self.config.regression else int(output[0, 0].argmax())
            # Upstream allows 0 only for the first code; a code above the highest would have no embedding.
            codes.append(min(max(code, 1 if place else 0), self.config.codes))
        return codes[1:]

    @classmethod
    def from_official(cls, config_path: Path, weights: Mapping[str, Tensor], where: str) -> DurationModel:
        """Load the official tensors, ``['state_dict']['dur_model']``, strictly, ignoring those of :data:`UNUSED`
        inputs. Raises :class:`CheckpointError`."""
        needed = {name: value for name, value in weights.items() if not name.startswith(UNUSED)}
        shape = WeightShapes(shapes_of(needed), where, "a MegaTTS 3 duration model")
        config = DurationConfig.read(ConfigFile.read(config_path), shape("encoder.emb.weight", 2)[0])
        return loaded_strictly(lambda: cls(config), needed, where)


# Codes of the duration model to spoken durations: the official rules, in order.
#
# ``dur_pred`` of ``tts/frontend_function.py``. Its random disturbance is off by default here, and reproducible for
# equal requests, so that takes of a text are equally long; upstream draws 0.1 anew each time.
FRAMES_MULTIPLE = 8
"""Durations of a segment add up to a multiple of this."""
SEAM = 32
"""Additional frames of a segment's last phone, for the fade into the next."""
LAST = (64, 128)
"""Bounds of the last phone of the text."""
LONGEST = 127
FIRST = 8
"""Frames of silence before the first segment."""
LONG_PAUSE, SHORT_PAUSE = 64, 32
PAUSES = {
    **{phone_number(name): LONG_PAUSE for name in ("。", "！", "？", "sil")},
    **{phone_number(name): SHORT_PAUSE for name in ("，", "；")},
}
"""Least frames of pause phones."""


@dataclass(frozen=True)
class Tempo:
    """Changes of durations before the rules for pauses."""

    stretch: float = 1.0
    """Factor on durations, the official ``dur_alpha``; 1 / speed."""
    disturbance: float = 0.0
    """Each duration is multiplied or divided by up to 1 + this; the official ``dur_disturb``."""


def settled_durations(
    codes: Sequence[int],
    phones: Sequence[int],
    code_size: int,
    is_first: bool,
    is_last: bool,
    tempo: Tempo = Tempo(),
    generator: torch.Generator | None = None,
) -> list[int]:
    """Frames of 10 ms for each of a segment's ``phones``, from the model's ``codes``.

    ``is_first`` and ``is_last``: the segment's place in the text. ``generator`` draws the disturbance: for all phones
    whether to multiply or to divide, then for all phones the amount.
    """
    frames = (torch.tensor(codes) - 1).clamp(0, code_size - 1).float()
    frames[-1] = frames[-1].clamp(*LAST) if is_last else frames[-1] + SEAM
    if tempo.disturbance:
        multiplied = torch.rand(len(frames), generator=generator) > 0.5
        factors = 1 + torch.rand(len(frames), generator=generator) * tempo.disturbance
        frames = torch.where(multiplied, frames * factors, frames / factors)
    frames = (frames * tempo.stretch).round().clamp(0, LONGEST)
    settled = [max(int(count), PAUSES.get(phone, 0)) for count, phone in zip(frames.tolist(), phones, strict=True)]
    if is_first:
        settled[0] = FIRST
    settled[-1] += -sum(settled) % FRAMES_MULTIPLE
    return settled
