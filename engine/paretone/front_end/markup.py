"""Markup in a text, such as SSML or HTML: no model here reads it, so that it is spoken as words. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Collection

from paretone.reading import named_first, shortened

_ATTRIBUTE = r"""\s+[A-Za-z_:][\w:.-]*\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=]+)"""
_MARKUP = re.compile(
    rf"</?(?P<name>[A-Za-z][\w:.-]*)(?:{_ATTRIBUTE})*\s*/?>"  # <break time="1s"/>, </p>
    r"|<!--|<!DOCTYPE\b|<\?xml\b|<!\[CDATA\["
    r"|&(?:[A-Za-z]{2,8}|\#[0-9]{1,7}|\#x[0-9A-Fa-f]{1,6});"  # &amp; &#8217;
)
_NAMED = 3
"""Kinds of markup named in a note."""
_LONGEST = 30


def markup_notes(text: str, understood: Collection[str] = ()) -> tuple[str, ...]:
    """A note on the markup in ``text``, if there is any; elements named as one of ``understood`` are the model's
    own."""
    found = [one[0] for one in _MARKUP.finditer(text) if one["name"] not in understood]
    if not found:
        return ()
    named = named_first([shortened(one, _LONGEST) for one in dict.fromkeys(found)], _NAMED)
    return (
        f"The text has markup ({named}), which no model here reads: it is spoken as words or left out. Take it out; "
        "for a pause, write a comma, a full stop or a dash.",
    )
