"""Backbone operations of decoding, from the decoded tokens; see
:mod:`paretone.models.families.language`."""

from __future__ import annotations

from collections.abc import Sequence

from paretone.models.families.token_model import TokenModel
from paretone.sampling.autoregressive import Cycle


def plain_operations(model: TokenModel, prompt: int, cycles: Sequence[Cycle]) -> float:
    """Operations of ``model`` reading ``prompt`` elements and giving the tokens of ``cycles``, and the stop where there
    was one, one by one."""
    given = sum(len(cycle.tokens) for cycle in cycles) + any(cycle.stopped for cycle in cycles)
    return _pass(model, prompt, 0, 1) + sum(_pass(model, 1, prompt + done, 1) for done in range(given - 1))


def spent_operations(
    target: TokenModel, draft: TokenModel | None, prompt: int, cycles: Sequence[Cycle], draft_prompt: int = 0
) -> float:
    """Operations that ``cycles`` took: of the target over the ``prompt`` elements and every token that it read, of the
    draft likewise over its ``draft_prompt``."""
    spent, read, drafter_read, committed = 0.0, 0, 0, 0
    for cycle in cycles:
        # A stop id is never read; the element before the first new token always is.
        drafted = [one for one in cycle.drafted if one < target.codes]
        new = prompt + committed + len(drafted) - read
        spent += _pass(target, new, read, len(drafted) + 1)
        if draft is not None and cycle.drafted:
            known = draft_prompt + committed
            spent += _pass(draft, known - drafter_read, drafter_read, 1)
            spent += sum(_pass(draft, 1, known + place, 1) for place in range(len(cycle.drafted) - 1))
            drafter_read = known + len(cycle.drafted) - 1
        committed += len(cycle.tokens)
        read = min(prompt + committed - len(cycle.tokens) + len(drafted), prompt + committed - 1)
        drafter_read = min(drafter_read, draft_prompt + committed - 1)
    return spent


def _pass(model: TokenModel, tokens: int, context: int, scored: int) -> float:
    """Operations of one pass over ``tokens`` after ``context``, of which the last ``scored`` go through the head."""
    return model.transformer.operations(tokens, context) + 2 * scored * model.head.numel()
