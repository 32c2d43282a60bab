"""Finds groups of speech tokens with nearly parallel rows in the model's tables, and plays the members of a group."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.models.base import SpeechModel
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import TokenModel
from paretone.observer import Observer
from paretone.sampling.verification import Rule, TokenGroups, by_group
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques import resolve, token_groups
from paretone.techniques.base import JobTask
from paretone.techniques.resolving import knobs_under
from paretone.techniques.token_groups.groups import SPACES, GroupHeard, Groups, GroupsFound, HearGroup

ROWS = 1024
"""Number of tokens compared with all others at once."""


def find_groups(model: SpeechModel, setting: Setting, observer: Observer) -> Groups:
    """Groups of the weights that ``setting`` runs on ``model``, by its knobs of the technique. Raises
    :class:`SettingError` for a model without tokens, and :class:`paretone.errors.Cancelled`."""
    speech, knobs = language_speech(model), knobs_under(setting, token_groups.NAME)
    space, cosine = str(knobs["space"]), float(knobs["cosine"])
    smallest, largest = int(knobs["smallest"]), int(knobs["largest"])
    plan = resolve(speech.info, setting, prepared=False)
    tokens = speech.networks(plan).target.tokens
    members = neighbourhoods(directions(tokens, space), largest, observer).groups(cosine, smallest)
    return Groups(speech.info.id, plan.fingerprint, tokens.codes, space, cosine, smallest, largest, members)


def language_speech(model: SpeechModel) -> LanguageSpeech:
    """``model`` as a speech language model. Raises :class:`SettingError` if it is none."""
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} decodes no speech tokens; load a speech language model.")
    return model


@torch.inference_mode()
def directions(tokens: TokenModel, space: str) -> Tensor:
    """Unit rows (codes, hidden), float32, of the speech tokens: from the table of scores, less their mean, or from the
    embeddings. The mean row of scores adds equally to all and changes no probability."""
    table = (tokens.head if space == SPACES[0] else tokens.embedding)[: tokens.codes].float()
    return F.normalize(table - table.mean(0) if space == SPACES[0] else table, dim=-1)


@dataclass(frozen=True)
class Neighbourhoods:
    """Most similar rows around each of n rows, itself first: ids and cosines, (n, most)."""

    ids: Tensor
    cosines: Tensor

    def nearest(self, most: int) -> Neighbourhoods:
        return Neighbourhoods(self.ids[:, :most], self.cosines[:, :most])

    def groups(self, similarity: float, smallest: int) -> tuple[tuple[int, ...], ...]:
        """``smallest`` or more rows around each with a cosine of ``similarity`` or more, each group once, by centre."""
        sizes = (self.cosines >= similarity).sum(-1)
        wanted = (sizes >= smallest).nonzero().flatten()
        found: dict[tuple[int, ...], None] = {}
        for members, size in zip(self.ids[wanted].tolist(), sizes[wanted].tolist(), strict=True):
            found.setdefault(tuple(sorted(members[:size])))
        return tuple(found)


@torch.inference_mode()
def neighbourhoods(rows: Tensor, most: int, observer: Observer) -> Neighbourhoods:
    """The ``most`` nearest rows of each of ``rows`` (n, hidden). ``observer`` may cancel."""
    count, ids, cosines = len(rows), [], []
    for first in range(0, count, ROWS):
        observer.check()
        observer.progress(first, count)
        found = rows[first : first + ROWS] @ rows.T
        # A row is always in its own group, even if others equal it.
        places = torch.arange(len(found), device=rows.device)
        found[places, places + first] = 2.0
        nearest = found.topk(min(most, count), dim=-1)
        ids.append(nearest.indices)
        cosines.append(nearest.values)
    observer.progress(count, count)
    return Neighbourhoods(torch.cat(ids).cpu(), torch.cat(cosines).cpu())


PAUSE_SECONDS = 0.15
"""Silence between two members."""
FADE_SECONDS = 0.01
"""Fade at both ends of a member, against clicks."""


def hear(task: JobTask) -> GroupHeard:
    """Sound of the members, each repeated: a single token is too short to be heard. Raises :class:`SettingError` for
    unknown tokens, and :class:`paretone.errors.Cancelled`."""
    asked: HearGroup = task.request
    speech, check = language_speech(task.loaded), task.observer.check
    codes = speech.own.tokens.codes
    if strange := [one for one in asked.members if not 0 <= one < codes]:
        raise SettingError(f"{speech.info.title} has no token {strange[0]}; its tokens are 0 to {codes - 1}.")
    # A text prepares the voice for the decoder; it is not spoken.
    decoder = speech.internals(scripted(speech, "Rice.", asked.voice, asked.setting.baseline), check).decoder
    rate, count = speech.info.sample_rate, max(1, round(asked.held_seconds * speech.token_rate))
    pause, fade = np.zeros(round(PAUSE_SECONDS * rate), np.float32), round(FADE_SECONDS * rate)
    parts: list[np.ndarray] = []
    starts, length = [], 0
    for one in asked.members:
        check()
        sound = np.array(decoder().whole([one] * count).samples, np.float32)
        ramp = np.linspace(0, 1, min(fade, len(sound)), dtype=np.float32)
        sound[: len(ramp)] *= ramp
        sound[len(sound) - len(ramp) :] *= ramp[::-1]
        starts.append(length / rate)
        parts += [sound, pause]
        length += len(sound) + len(pause)
    return GroupHeard(asked.members, np.concatenate(parts[:-1]), rate, tuple(starts))


def find(task: JobTask) -> GroupsFound:
    started = time.perf_counter()
    return GroupsFound(find_groups(task.loaded, task.request.setting, task.observer), time.perf_counter() - started)


def rule(codes: int, rows: int, device: torch.device, groups: Groups, within: bool) -> Rule:
    """See :attr:`paretone.setting.plan.LanguagePlan.acceptance`. Each id that ends speech is its own group. Raises
    :class:`SettingError` for groups of another number of tokens."""
    if groups.codes != codes:
        raise SettingError(f"The groups are those of {groups.codes} tokens, but the model has {codes}; find them anew.")
    return by_group(matrices(groups, rows, str(device)), within=within)


@lru_cache(4)
def matrices(groups: Groups, rows: int, device: str) -> TokenGroups:
    return TokenGroups(groups.members, rows, device)
