"""Finds groups of speech tokens whose rows in the model's tables point in nearly the same direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.models.base import SpeechModel
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.token_model import TokenModel
from paretone.observer import Observer
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting
from paretone.techniques import resolve, token_groups
from paretone.techniques.token_groups.groups import SPACES, Groups

ROWS = 1024
"""Tokens that are compared with all others at once."""


def find_groups(model: SpeechModel, setting: Setting, observer: Observer) -> Groups:
    """The groups of the weights that ``setting`` runs on ``model``, as its knobs of the technique say. Raises
    :class:`SettingError` for a model without tokens, and :class:`paretone.errors.Cancelled`."""
    speech, technique = language_speech(model), token_groups.TECHNIQUE
    used = setting.technique(technique.name)
    knobs = checked(technique.knobs, used.knobs if used else {}, technique.title)
    space, cosine = str(knobs["space"]), float(knobs["cosine"])
    smallest, largest = int(knobs["smallest"]), int(knobs["largest"])
    plan = resolve(speech.info, setting, prepared=False)
    tokens = speech.networks(plan).target.tokens
    members = neighbourhoods(directions(tokens, space), largest, observer).groups(cosine, smallest)
    return Groups(speech.info.id, plan.fingerprint, tokens.codes, space, cosine, smallest, largest, members)


def language_speech(model: SpeechModel) -> LanguageSpeech:
    """``model``, which has speech tokens. Raises :class:`SettingError` if it has none."""
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{model.info.title} decodes no speech tokens; load a speech language model.")
    return model


@torch.inference_mode()
def directions(tokens: TokenModel, space: str) -> Tensor:
    """Unit rows (codes, hidden), float32, of the spoken tokens: those that score them, less their mean, or those that
    embed them. The mean of the former adds equally to all scores and changes no probability."""
    table = (tokens.head if space == SPACES[0] else tokens.embedding)[: tokens.codes].float()
    return F.normalize(table - table.mean(0) if space == SPACES[0] else table, dim=-1)


@dataclass(frozen=True)
class Neighbourhoods:
    """Around each of n rows the most similar ones, itself first: ids and their cosines, (n, most)."""

    ids: Tensor
    cosines: Tensor

    def nearest(self, most: int) -> Neighbourhoods:
        """The same with only the ``most`` nearest ones."""
        return Neighbourhoods(self.ids[:, :most], self.cosines[:, :most])

    def groups(self, similarity: float, smallest: int) -> tuple[tuple[int, ...], ...]:
        """Of each row those whose cosine reaches ``similarity``, if they are at least ``smallest``; equal groups once,
        in the order of their centres."""
        sizes = (self.cosines >= similarity).sum(-1)
        wanted = (sizes >= smallest).nonzero().flatten()
        found: dict[tuple[int, ...], None] = {}
        for members, size in zip(self.ids[wanted].tolist(), sizes[wanted].tolist(), strict=True):
            found.setdefault(tuple(sorted(members[:size])))
        return tuple(found)


@torch.inference_mode()
def neighbourhoods(rows: Tensor, most: int, observer: Observer) -> Neighbourhoods:
    """The ``most`` rows around each of ``rows`` (n, hidden). ``observer`` may cancel."""
    count, ids, cosines = len(rows), [], []
    for first in range(0, count, ROWS):
        observer.check()
        observer.progress(first, count)
        found = rows[first : first + ROWS] @ rows.T
        # A row is in its own group, whatever else is equal to it.
        places = torch.arange(len(found), device=rows.device)
        found[places, places + first] = 2.0
        nearest = found.topk(min(most, count), dim=-1)
        ids.append(nearest.indices)
        cosines.append(nearest.values)
    observer.progress(count, count)
    return Neighbourhoods(torch.cat(ids).cpu(), torch.cat(cosines).cpu())
