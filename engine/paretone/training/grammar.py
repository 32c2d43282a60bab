"""A weighted grammar that sentences are drawn from."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Forms = tuple[tuple[int, str], ...]
"""What a symbol can become, with weights; ``<name>`` in a form is another symbol."""


@dataclass(frozen=True)
class Grammar:
    """Lists of words, drawn evenly (``_`` is a blank), and rules, drawn by weight."""

    words: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, Forms]

    def extended(self, words: Mapping[str, tuple[str, ...]], rules: Mapping[str, Forms]) -> Grammar:
        """This grammar with further words and rules; those of the same name replace its rules."""
        return Grammar({**self.words, **words}, {**self.rules, **rules})

    def expand(self, symbol: str, draw: random.Random) -> str:
        """A drawn form of ``symbol``, with the symbols in it expanded."""
        if symbol in self.words:
            return draw.choice(self.words[symbol]).replace("_", " ")
        weights, forms = zip(*self.rules[symbol], strict=True)
        (form,) = draw.choices(forms, weights)
        return re.sub(r"<([^>]+)>", lambda slot: self.expand(slot[1], draw), form)


def even(forms: Iterable[str]) -> Forms:
    """Forms of equal weight."""
    return tuple((1, form) for form in forms)
