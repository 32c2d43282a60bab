"""What decodes one passage of a language model is given; see :attr:`engine.setting.plan.LanguagePlan.decoding`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.models.families.token_model import TokenModel
from engine.sampling.autoregressive import Check, Request
from engine.sampling.tokens import TokenSampler


@dataclass(frozen=True)
class DecodingLoop:
    """A passage about to be decoded."""

    target: TokenModel
    """The model that speaks."""
    draft: TokenModel | None
    """What the plan has to propose tokens."""
    request: Request
    draft_request: Request | None
    """What the draft continues: its prompt may be embedded with other tables."""
    sampler: TokenSampler
    uniforms: Callable[[], float]
    """The random numbers of the passage."""
    check: Check
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
