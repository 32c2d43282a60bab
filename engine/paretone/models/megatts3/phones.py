"""Phones of MegaTTS 3: the official table, tones and durations over frames, and the phone encoder.

Tables of ``tts/utils/text_utils/dict.json``, rules of ``ph_tone_convert.py``, ``nar_tts_modules.py`` and ``align.py``.
Aligner and grapheme model write a Chinese phone and its tone as one token; everything else is its phone's number, with
the tone of English.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.front_end.phones import TimedPhone
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.networks.layers import split_heads
from paretone.models.networks.shapes import Modules

ENGLISH = tuple(
    "aa ae ah ao aw ax ay b ch d dh eh ehr er ey f g hh ih iy iyr jh k l m n ng oh ow oy p r s sh t th uh uw uwr v w y "
    "z zh".split()
)
"""Official English phones, ``E0aa`` to ``E0zh``, in the order of their numbers."""
SILENCE = 145
ENGLISH_TONE = 3
"""Single tone of everything English in the official front end."""

RESERVED = ("<pad>", "<EOS>", "<UNK>")
UNKNOWN = 2
_CHINESE = (
    "a ai air an ang angr anr ao aor ar b c ch d e ei eir en eng engr enr er f g h i ia ian iang iangr ianr iao "
    "iaor iar ie ier ii iii iiir iir in ing ingr inr io iong iongr iou iour ir j k l m n ng o ong ongr or ou our "
    "p q r s sh t u ua uai uair uan uang uangr uanr uar uei ueir uen ueng uengr uenr uo uor ur v van vanr ve ver "
    "vn vnr vr x z zh ＿"
)
_MARKS = "… 、 。 《 》 【 】 ！ ＂ ＃ ＄ ％ ＇ ＇＇ （ ） ＊ ， ： ； ？ ＼ ＾ ＿ ｀ ｛ ｝ ～"
_SOUNDS = (*(f"C0{name}" for name in _CHINESE.split()), *(f"E0{name}" for name in ENGLISH))
PHONES = (*RESERVED, *_SOUNDS, "sil", *_MARKS.split())
"""Phones by number, 174 in total."""
TONES = (*RESERVED, *"0 1 10 11 12 13 15 17 2 3 4 5 6 7 8 9".split())
"""Tones by number, 19 in total."""
FIRST_CHINESE, LAST_CHINESE = 3, 100

FIRST_JOINED, LAST_JOINED = 200, 788
TONES_OF_CHINESE = (4, 11, 12, 13, 14, 15)
"""Numbers of the six tones of Chinese phones, "1" to "6"."""
KEPT_TONES = frozenset((0, *TONES_OF_CHINESE))
"""The backbone takes everything but Chinese and padding with the tone of English."""

_NUMBERS = {name: number for number, name in enumerate(PHONES)}


def phone_number(name: str) -> int:
    """Number of a phone; :data:`UNKNOWN` for other names."""
    return _NUMBERS.get(name, UNKNOWN)


def separated(token: int) -> tuple[int, int]:
    """Phone and tone of a token."""
    if FIRST_JOINED <= token <= LAST_JOINED:
        # Counted from one below; the number 200, which is no phone's, maps to the phone before the first.
        phone, tone = divmod(token - FIRST_JOINED - 1, len(TONES_OF_CHINESE))
        return phone + FIRST_CHINESE, TONES_OF_CHINESE[tone]
    return (token if 0 <= token < len(PHONES) else UNKNOWN), ENGLISH_TONE


def joined(phone: int, tone: int) -> int:
    """Token of a phone with a tone, which must be one of :data:`TONES_OF_CHINESE` for a Chinese phone."""
    if not FIRST_CHINESE <= phone <= LAST_CHINESE:
        return phone
    return FIRST_JOINED + 1 + (phone - FIRST_CHINESE) * len(TONES_OF_CHINESE) + TONES_OF_CHINESE.index(tone)


def frames_of_phones(durations: Sequence[int]) -> np.ndarray:
    """(sum of ``durations``,) int64, ``mel2ph``: index, from one, of the phone in each frame."""
    return np.repeat(np.arange(1, len(durations) + 1, dtype=np.int64), durations)


def durations_of_phones(frames: np.ndarray, phones: int) -> np.ndarray:
    """(phones,) int64: number of ``frames`` (n,) of each phone; the inverse of :func:`frames_of_phones`."""
    return np.bincount(frames, minlength=phones + 1)[1 : phones + 1]


# Phone encoder of MegaTTS 3: convolutions, then transformer layers with relative positions.
#
# The diffusion transformer and the duration model each have one, of different sizes. Source: ByteDance's
# ``tts/modules/ar_dur/commons/rel_transformer.py``; relative positions as in Shaw et al., arXiv 1803.02155.
MASKED_SCORE = -1e4


class ChannelNorm(nn.Module):
    """Layer norm over the channels of (rows, sequence, width), with the official names of its parameters."""

    epsilon = 1e-4

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.epsilon)


def convolve(convolution: nn.Conv1d, x: Tensor) -> Tensor:
    """A convolution along the sequence of (rows, sequence, width)."""
    if convolution.kernel_size == (1,):
        return F.linear(x, convolution.weight[..., 0], convolution.bias)
    return convolution(x.transpose(1, 2)).transpose(1, 2)


class PhonePrenet(nn.Module):
    """Three convolutions, each with norm and ReLU, with a residual connection; (rows, phones, width) to the same."""

    kernel, depth = 5, 3

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_layers = Modules(
            nn.Conv1d(width, width, self.kernel, padding=self.kernel // 2) for _ in range(self.depth)
        )
        self.norm_layers = Modules(ChannelNorm(width) for _ in range(self.depth))
        self.proj = nn.Conv1d(width, width, 1)
        # As in the official code, the prenet is initially the identity.
        for parameter in self.proj.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """``valid`` is (rows, phones, 1), one for phones and zero in the padding."""
        inner = x
        for convolution, norm in zip(self.conv_layers, self.norm_layers, strict=True):
            inner = norm(convolve(convolution, inner * valid)).relu()
        return (x + convolve(self.proj, inner)) * valid


class RelativeAttention(nn.Module):
    """Self-attention with learnt vectors for each distance up to a window, shared by the heads."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (nn.Conv1d(width, width, 1) for _ in range(4))
        head_width = width // heads
        self.emb_rel_k, self.emb_rel_v = (
            nn.Parameter(torch.randn(1, 2 * window + 1, head_width) * head_width**-0.5) for _ in range(2)
        )

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same; ``valid`` as for :class:`PhonePrenet`."""
        query, key, value = (
            split_heads(convolve(projection, x), self.heads) for projection in (self.conv_q, self.conv_k, self.conv_v)
        )
        query = query / math.sqrt(query.shape[-1])
        # (phones, distances) indices of each phone's neighbours, first to last, in a row padded by the window.
        band = torch.arange(x.shape[1], device=x.device)[:, None] + torch.arange(2 * self.window + 1, device=x.device)
        scores = query @ key.transpose(2, 3) + self._spread(query @ self.emb_rel_k[0].T, band)
        weights = scores.masked_fill(valid[:, None, None, :, 0] == 0, MASKED_SCORE).softmax(dim=-1)
        mixed = weights @ value + self._gathered(weights, band) @ self.emb_rel_v[0]
        return convolve(self.conv_o, mixed.transpose(1, 2).flatten(2))

    def _spread(self, near: Tensor, band: Tensor) -> Tensor:
        """(rows, heads, phones, distances) to (rows, heads, phones, phones), zero beyond the window."""
        phones = near.shape[2]
        padded = near.new_zeros(*near.shape[:3], phones + 2 * self.window)
        return padded.scatter(-1, band.expand_as(near), near)[..., self.window : self.window + phones]

    def _gathered(self, weights: Tensor, band: Tensor) -> Tensor:
        """Inverse of :meth:`_spread`: the weights within the window, zero beyond the sequence's ends."""
        return F.pad(weights, (self.window, self.window)).gather(-1, band.expand(*weights.shape[:2], *band.shape))


class PhoneFeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, kernel: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv1d(width, hidden, kernel, padding=kernel // 2)
        self.conv_2 = nn.Conv1d(hidden, width, 1)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same; ``valid`` as for :class:`PhonePrenet`."""
        return convolve(self.conv_2, convolve(self.conv_1, x * valid).relu()) * valid


class RelativeTransformer(nn.Module):
    """Pre-norm layers of :class:`RelativeAttention` and :class:`PhoneFeedForward`, and a final norm."""

    def __init__(self, width: int, layers: int, heads: int, hidden: int, kernel: int, window: int) -> None:
        super().__init__()
        self.attn_layers = Modules(RelativeAttention(width, heads, window) for _ in range(layers))
        self.norm_layers_1 = Modules(ChannelNorm(width) for _ in range(layers))
        self.ffn_layers = Modules(PhoneFeedForward(width, hidden, kernel) for _ in range(layers))
        self.norm_layers_2 = Modules(ChannelNorm(width) for _ in range(layers))
        self.last_ln = ChannelNorm(width)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """(rows, phones, width) to the same, zero in the padding; ``valid`` as for :class:`PhonePrenet`."""
        parts = self.norm_layers_1, self.attn_layers, self.norm_layers_2, self.ffn_layers
        for attention_norm, attention, forward_norm, feed_forward in zip(*parts, strict=True):
            x = x + attention(attention_norm(x), valid)
            x = x + feed_forward(forward_norm(x), valid)
        return self.last_ln(x) * valid


class PhoneEncoder(nn.Module):
    """Phone ids to contextual vectors. ``state_dict`` has the official keys: ``emb``, ``pre``, ``encoder``.

    ``entries`` are the rows of the phone table, of which id 0 is padding; ``ffn`` is the inner width of the layers'
    feed-forward, ``kernel`` its number of phones, ``window`` the maximum distance that attention distinguishes.
    """

    def __init__(
        self, entries: int, width: int, layers: int, heads: int, ffn: int, kernel: int = 3, window: int = 4
    ) -> None:
        super().__init__()
        self.emb = nn.Embedding(entries, width, padding_idx=0)
        nn.init.normal_(self.emb.weight, 0.0, width**-0.5)
        self.pre = PhonePrenet(width)
        self.encoder = RelativeTransformer(width, layers, heads, ffn, kernel, window)

    def forward(self, phones: Tensor, other: Tensor) -> Tensor:
        """``phones`` are (rows, phones) ids, padded with 0 at the end; ``other`` (rows, phones, width) embeds a
        sequence of the same length, such as tones. Returns (rows, phones, width), zero in the padding."""
        valid = (phones > 0)[..., None].to(other.dtype)
        x = self.emb(phones) * math.sqrt(self.emb.embedding_dim) + other
        return self.encoder(self.pre(x, valid), valid)


@dataclass(frozen=True)
class Timed:
    """Phones and tones by official number, each with its duration in frames of the duration clock."""

    phones: tuple[int, ...]
    tones: tuple[int, ...]
    durations: tuple[int, ...]

    @property
    def frames(self) -> int:
        return sum(self.durations)

    def __add__(self, other: Timed) -> Timed:
        return Timed(self.phones + other.phones, self.tones + other.tones, self.durations + other.durations)


@dataclass(frozen=True)
class MegaPrompt:
    latents: Tensor = field(repr=False)
    """(1, frames, 32) float32, on the CPU."""
    spoken: Timed = field(repr=False)
    """Phones of the recording, with the duration of its latents."""
    lufs: float
    """Loudness of the recording, the target for all speech."""
    seconds: float
    """Length without the added silence."""
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> int:
        return self.latents.shape[1]


@dataclass(frozen=True)
class MegaPassage:
    """One segment of a text after its prompt, as input of the backbone."""

    text: str
    frames: int
    """Number of latents, including the prompt's."""
    phones: Tensor = field(repr=False)
    """(1, phones) int64, the prompt's first."""
    tones: Tensor = field(repr=False)
    """(1, phones) int64."""
    mel2ph: Tensor = field(repr=False)
    """(1, 4 · frames) int64: phone, from one, in each frame of the duration clock."""
    timed: tuple[TimedPhone, ...] = field(default=(), repr=False)
    """Phones of the new text in time, if the front end times them."""

    @classmethod
    def of(cls, text: str, prompt: Timed, spoken: Timed, timed: tuple[TimedPhone, ...] = ()) -> MegaPassage:
        """``spoken`` after ``prompt``; as upstream, an incomplete last latent is dropped."""
        whole = prompt + spoken
        kept = [tone if tone in KEPT_TONES else ENGLISH_TONE for tone in whole.tones]
        frames = whole.frames // LATENT_STRIDE
        mel2ph = frames_of_phones(whole.durations)[: frames * LATENT_STRIDE]
        phones, tones, places = (
            torch.from_numpy(np.asarray(one, np.int64))[None] for one in (whole.phones, kept, mel2ph)
        )
        return cls(text, frames, phones, tones, places, timed)
