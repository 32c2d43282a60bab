"""Mels of mean zero and variance one inside of a network whose layout takes and gives plain ones.

A log mel has a deviation of three to four and a mean far from zero, and a small model spends its first thousand steps
on that. Here a model is trained on normalised mels; at the end, means and deviations become part of its first and last
linear layers, so that the layout stays the official one. The noise of flow matching stays what it is there, one on the
plain mel.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from paretone.models.f5.dit import DiT
from paretone.training.flow_matching import FlowMatchingDraw
from paretone.training.moving import moved

MIDDLE = 0.5
"""Time at which the noised mel has mean zero and variance one."""


@dataclass(frozen=True)
class MelNormalisation:
    """Statistics of a corpus, both (bands,)."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, mels: Sequence[np.ndarray]) -> MelNormalisation:
        """Of log mels, each (frames, bands)."""
        frames = np.concatenate(mels).astype(np.float32)
        return cls(torch.from_numpy(frames.mean(0)), torch.from_numpy(frames.std(0)))

    def to(self, device: torch.device) -> MelNormalisation:
        return moved(self, device)

    @property
    def noised_mean(self) -> Tensor:
        """Of the noised mel at :data:`MIDDLE`."""
        return MIDDLE * self.mean

    @property
    def noised_deviation(self) -> Tensor:
        """Of the noised mel at :data:`MIDDLE`."""
        return ((1 - MIDDLE) ** 2 + (MIDDLE * self.deviation) ** 2).sqrt()

    def problem(self, problem: FlowMatchingDraw) -> FlowMatchingDraw:
        """``problem`` as the model sees it; what is not known, zero on the plain mel, is as far below the mean."""
        return replace(
            problem,
            noised=(problem.noised - self.noised_mean) / self.noised_deviation,
            condition=(problem.condition - self.mean) / self.deviation,
        )

    def velocity(self, predicted: Tensor) -> Tensor:
        """What the model predicts (…, bands), of the plain mel."""
        return predicted * self.deviation + self.mean

    @torch.no_grad()
    def folded(self, model: DiT) -> DiT:
        """A copy of ``model`` that takes plain mels and gives their velocity."""
        plain = copy.deepcopy(model)
        bands = len(self.mean)
        entry, leave = plain.input_embed.proj, plain.proj_out
        noised, condition = entry.weight[:, :bands], entry.weight[:, bands : 2 * bands]
        noised.div_(self.noised_deviation)
        condition.div_(self.deviation)
        entry.bias.sub_(noised @ self.noised_mean + condition @ self.mean)
        leave.weight.mul_(self.deviation[:, None])
        leave.bias.copy_(self.velocity(leave.bias))
        return plain

    @torch.no_grad()
    def unfolded(self, plain: DiT) -> DiT:
        """A copy of ``plain``, which takes plain mels, for normalised ones: the opposite of :meth:`folded`."""
        model = copy.deepcopy(plain)
        bands = len(self.mean)
        entry, leave = model.input_embed.proj, model.proj_out
        noised, condition = entry.weight[:, :bands], entry.weight[:, bands : 2 * bands]
        entry.bias.add_(noised @ self.noised_mean + condition @ self.mean)
        noised.mul_(self.noised_deviation)
        condition.mul_(self.deviation)
        leave.weight.div_(self.deviation[:, None])
        leave.bias.copy_((leave.bias - self.mean) / self.deviation)
        return model
