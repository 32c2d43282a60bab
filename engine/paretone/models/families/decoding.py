"""Arguments of the loop that decodes one passage of a language model; see
:attr:`paretone.setting.plan.LanguagePlan.decoding`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paretone.models.families import parts
from paretone.models.families.token_model import TokenModel
from paretone.sampling.autoregressive import Check, Request
from paretone.sampling.tokens import TokenSampler
from paretone.sampling.verification import Rule
from paretone.setting.plan import Part


@dataclass(frozen=True)
class DecodingLoop:
    """A passage about to be decoded."""

    target: TokenModel
    """The model that speaks."""
    draft: TokenModel | None
    """The plan's draft."""
    request: Request
    draft_request: Request | None
    """Request of the draft, whose prompt may be embedded with other tables."""
    sampler: TokenSampler
    uniforms: Callable[[], float]
    """The random numbers of the passage."""
    check: Check
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
    acceptance: Part | None = None
    """The plan's own way of accepting drafted tokens; ``None``: the decoding technique's."""

    @property
    def rule(self) -> Rule | None:
        """The rule of :attr:`acceptance`."""
        if self.acceptance is None:
            return None
        return parts.rule(self.acceptance, self.target.codes, self.target.rows, self.target.device)
