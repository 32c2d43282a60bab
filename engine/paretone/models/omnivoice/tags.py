"""The language and the style tags that OmniVoice reads before a text. Torch-free.

Source: ``_resolve_language`` and ``_resolve_instruct`` of k2-fsa/OmniVoice; what those warn of or raise is said here in
sentences, in the same cases.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from paretone.errors import SettingError
from paretone.models.omnivoice.tables import tables

_COMMAS = re.compile(r"\s*[,，]\s*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def language(name: str) -> tuple[str | None, tuple[str, ...]]:
    """The id of a language given by id or English name, and remarks for the user; ``None``: no language.

    An unknown language is ignored, as upstream, and a note says so.
    """
    known, name = tables().languages, name.strip()
    lowered = name.lower()
    if not name or lowered == "none":
        return None, ()
    if name in known.values():
        return name, ()
    if lowered in known:
        return known[lowered], ()
    close = difflib.get_close_matches(lowered, [*known, *known.values()], n=3, cutoff=0.7)
    like = f" Did you mean {' or '.join(close)}?" if close else ""
    return None, (
        f"OmniVoice does not know the language {name!r}, so no language was set.{like} It takes an id such as en, zh "
        "or ja, or an English name.",
    )


def is_chinese(text: str) -> bool:
    """Whether there is a Chinese character in ``text``."""
    return bool(_CHINESE.search(text))


def instruct(said: str, *, chinese: bool) -> str | None:
    """A description of the voice, such as ``female, low pitch``, as OmniVoice was trained with; ``None``: no
    description.

    ``chinese`` is whether the text is: words are then said in Chinese, unless an accent asks for English. Raises
    :class:`SettingError` for unknown words and for such as exclude each other.
    """
    words = [word.lower() for word in _COMMAS.split(said.strip()) if word.strip()]
    if not words:
        return None
    known = tables()
    for word in words:
        if word not in known.instruct_english and word not in known.instruct_chinese:
            raise SettingError(_unknown(word))
    dialect = next((word for word in words if word.endswith("话")), None)
    accent = next((word for word in words if word.endswith(" accent")), None)
    if dialect and accent:
        raise SettingError(
            f"{dialect} is a dialect of Chinese, but {accent} is of English: no voice has both; leave one out."
        )
    chinese = dialect is not None or (chinese and accent is None)
    translations = known.instruct_translations
    if not chinese:
        translations = {theirs: ours for ours, theirs in translations.items()}
    words = [translations.get(word, word) for word in words]
    for group in known.instruct_exclusive:
        _require_one(words, group)
    return ("，" if any(map(is_chinese, words)) else ", ").join(words)


def _require_one(words: Sequence[str], group: frozenset[str]) -> None:
    found = [word for word in words if word in group]
    if len(found) > 1:
        raise SettingError(f"A voice cannot be both {found[0]!r} and {found[1]!r}; leave one out.")


def _unknown(word: str) -> str:
    known = tables()
    close = difflib.get_close_matches(word, [*known.instruct_english, *known.instruct_chinese], n=1, cutoff=0.6)
    like = f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(sorted(known.instruct_english))}."
    return f"OmniVoice does not know the description {word!r} of a voice; {like}"
