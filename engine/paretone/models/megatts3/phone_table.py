"""The official phones and tones, the tokens that join them, and durations laid out over frames. Torch-free.

Tables of ``tts/utils/text_utils/dict.json``, rules of ``ph_tone_convert.py``, ``nar_tts_modules.py`` and ``align.py``.
Aligner and grapheme model write a Chinese phone and its tone as one token; everything else is its phone's number, and
has the tone of English.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

ENGLISH = tuple(
    "aa ae ah ao aw ax ay b ch d dh eh ehr er ey f g hh ih iy iyr jh k l m n ng oh ow oy p r s sh t th uh uw uwr v w y "
    "z zh".split()
)
"""The official English phones, ``E0aa`` to ``E0zh``, in the order of their numbers."""
FIRST_ENGLISH, SILENCE = 101, 145
ENGLISH_TONE = 3
"""The one tone that the official front end gives to everything English."""
NO_PHONE, NO_TONE = 301, 31
"""Phone and tone of the unconditional branch."""

RESERVED = ("<pad>", "<EOS>", "<UNK>")
UNKNOWN = 2
_CHINESE = (
    "a ai air an ang angr anr ao aor ar b c ch d e ei eir en eng engr enr er f g h i ia ian iang iangr ianr iao "
    "iaor iar ie ier ii iii iiir iir in ing ingr inr io iong iongr iou iour ir j k l m n ng o ong ongr or ou our "
    "p q r s sh t u ua uai uair uan uang uangr uanr uar uei ueir uen ueng uengr uenr uo uor ur v van vanr ve ver "
    "vn vnr vr x z zh ＿"
)
_MARKS = "… 、 。 《 》 【 】 ！ ＂ ＃ ＄ ％ ＇ ＇＇ （ ） ＊ ， ： ； ？ ＼ ＾ ＿ ｀ ｛ ｝ ～"
PHONES = (
    *RESERVED,
    *(f"C0{name}" for name in _CHINESE.split()),
    *(f"E0{name}" for name in ENGLISH),
    "sil",
    *_MARKS.split(),
)
"""Phones by their numbers, 174 of them."""
TONES = (*RESERVED, *"0 1 10 11 12 13 15 17 2 3 4 5 6 7 8 9".split())
"""Tones by their numbers, 19 of them."""
FIRST_CHINESE, LAST_CHINESE = 3, 100

FIRST_JOINED, LAST_JOINED = 200, 788
TONES_OF_CHINESE = (4, 11, 12, 13, 14, 15)
"""Numbers of the six tones that a Chinese phone can have, "1" to "6"."""
KEPT_TONES = frozenset((0, *TONES_OF_CHINESE))

_NUMBERS = {name: number for number, name in enumerate(PHONES)}


def phone_number(name: str) -> int:
    """The number of a phone, :data:`UNKNOWN` for what is none."""
    return _NUMBERS.get(name, UNKNOWN)


def separated(token: int) -> tuple[int, int]:
    """The phone and the tone that a token stands for."""
    if FIRST_JOINED <= token <= LAST_JOINED:
        # Counted from one below; the number 200 itself, which no phone has, falls to the phone before the first.
        phone, tone = divmod(token - FIRST_JOINED - 1, len(TONES_OF_CHINESE))
        return phone + FIRST_CHINESE, TONES_OF_CHINESE[tone]
    return (token if 0 <= token < len(PHONES) else UNKNOWN), ENGLISH_TONE


def joined(phone: int, tone: int) -> int:
    """The token for a phone with a tone, which must be one of :data:`TONES_OF_CHINESE` where the phone is Chinese."""
    if not FIRST_CHINESE <= phone <= LAST_CHINESE:
        return phone
    position = TONES_OF_CHINESE.index(tone)
    return FIRST_JOINED + 1 + (phone - FIRST_CHINESE) * len(TONES_OF_CHINESE) + position


def tones_for_speech(tones: Iterable[int]) -> list[int]:
    """Tones for the backbone: all that is neither Chinese nor padding has the tone of English."""
    return [tone if tone in KEPT_TONES else ENGLISH_TONE for tone in tones]


def frames_of_phones(durations: Sequence[int]) -> np.ndarray:
    """(sum of ``durations``,) int64, ``mel2ph``: for each frame the place, from one, of the phone that sounds."""
    return np.repeat(np.arange(1, len(durations) + 1, dtype=np.int64), durations)


def durations_of_phones(frames: np.ndarray, phones: int) -> np.ndarray:
    """(phones,) int64: how many of the ``frames`` (n,) each phone has; the inverse of :func:`frames_of_phones`."""
    return np.bincount(frames, minlength=phones + 1)[1 : phones + 1]
