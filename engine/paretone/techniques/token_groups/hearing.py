"""The sound of tokens: the members of a group, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from paretone.errors import SettingError
from paretone.models.base import SpeechModel, Voice
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques.token_groups.finding import language_speech
from paretone.techniques.token_groups.requests import GroupHeard

PAUSE_SECONDS = 0.15
"""Silence between two members."""
FADE_SECONDS = 0.01
"""Fade at both ends of a member, so that it does not click."""
_TEXT = "Rice."
"""A decoder needs a voice that is about to speak; what it would have said is not decoded."""


def hear_group(
    model: SpeechModel,
    setting: Setting,
    voice: Voice,
    members: Sequence[int],
    held_seconds: float,
    check: Callable[[], None],
) -> GroupHeard:
    """``members`` in ``voice``, each repeated for ``held_seconds``: a token by itself is too short to be heard. Raises
    :class:`SettingError` for tokens that the model has not, and what ``check`` raises."""
    speech = language_speech(model)
    codes = speech.own.tokens.codes
    if strange := [one for one in members if not 0 <= one < codes]:
        raise SettingError(f"{speech.info.title} has no token {strange[0]}; its tokens are 0 to {codes - 1}.")
    decoder = speech.internals(scripted(speech, _TEXT, voice, setting.baseline), check).decoder
    rate, count = speech.info.sample_rate, max(1, round(held_seconds * speech.token_rate))
    pause, fade = np.zeros(round(PAUSE_SECONDS * rate), np.float32), round(FADE_SECONDS * rate)
    parts: list[np.ndarray] = []
    starts, length = [], 0
    for one in members:
        check()
        sound = np.array(decoder().whole([one] * count).samples, np.float32)
        ramp = np.linspace(0, 1, min(fade, len(sound)), dtype=np.float32)
        sound[: len(ramp)] *= ramp
        sound[len(sound) - len(ramp) :] *= ramp[::-1]
        starts.append(length / rate)
        parts += [sound, pause]
        length += len(sound) + len(pause)
    return GroupHeard(tuple(members), np.concatenate(parts[:-1]), rate, tuple(starts))
