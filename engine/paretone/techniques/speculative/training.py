"""Training a draft: see :class:`paretone.training.companions.Companion`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from paretone.errors import SettingError
from paretone.models.files.checkpoints import read_weights
from paretone.models.files.language_weights import DRAFTS, read_draft
from paretone.techniques.speculative.recipe import DraftOptions, DraftRecipe
from paretone.techniques.speculative.requests import DraftRequest
from paretone.training.companions import Companion, MakeRecipe
from paretone.training.follower import Follower
from paretone.training.optimisers import Rates
from paretone.training.requests import CompanionRequest
from paretone.training.teacher import Teacher
from paretone.training.token_recipe import TokenData


@dataclass(frozen=True)
class Draft(Companion):
    """The model's lowest and topmost layers."""

    kind: ClassVar[str] = DRAFTS
    large_rates: ClassVar[Rates] = Rates(None, 1e-4)
    """AdamW's. The paper on SSD names none for drafts, and this one has not been tried on a release."""
    options: DraftOptions
    initial: Path | None = None
    """An earlier draft of the same layers to start from."""

    @classmethod
    def of(cls, request: DraftRequest) -> Draft:
        """The options of ``request``."""
        options = DraftOptions(
            **request.token_options,
            lower=request.lower,
            upper=request.upper,
            spoken_share=request.spoken_share,
            overlap_share=request.overlap_share,
        )
        return cls(options, Path(request.initial) if request.initial else None)

    def recipe(self, request: CompanionRequest, teacher: Teacher, rates: Rates, follower: Follower) -> MakeRecipe:
        """Raises :class:`CheckpointError` for an initial draft of another checkpoint, and :class:`SettingError` for one
        of other layers."""
        options = replace(
            self.options, matrix_rate=rates.matrices, other_rate=rates.others, temperature=teacher.temperature
        )
        initial = self._initial(teacher, follower)

        def make(data: TokenData, device: torch.device) -> DraftRecipe:
            return DraftRecipe(
                teacher.network, teacher.base, data, teacher.collate, device, teacher.sampler, options, initial
            )

        return make

    def _initial(self, teacher: Teacher, follower: Follower) -> Mapping[str, Tensor] | None:
        if self.initial is None:
            return None
        lower = min(self.options.lower, teacher.network.transformer.config.layers)
        draft = read_draft(self.initial, teacher.base, follower.check)
        if draft.trained != tuple(range(lower)):
            raise SettingError(
                f"{self.initial} has learnt in {len(draft.trained)} of the model's layers, not in the {lower} lowest "
                "ones; train a draft with as many, or start without it."
            )
        return read_weights(self.initial, follower.check)
