"""Texts before they are read: those that cannot be spoken as they are (empty or too long, in another language, with
markup, or with characters without sound), and long ones in pieces that a model can speak. Torch-free."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise

from paretone.errors import TextError
from paretone.fields import Count, typed
from paretone.front_end import MOST_CHARACTERS
from paretone.front_end.markup import ELEMENT, ENTITY
from paretone.front_end.semiotic import one_of
from paretone.front_end.writing import LONGEST_WORD
from paretone.front_end.written_forms import COUNTED, ENDINGS, TITLES, begins_sentence, listed
from paretone.observer import may_stop
from paretone.reading import named_first, shortened, shown
from paretone.wording import grouped

PIECE_SECONDS = 6.0
"""Maximum new speech per piece; the models were trained on up to ten seconds, prompt included."""
FIRST_PIECE_SECONDS = 3.5
PART_CHARACTERS = 2000
"""Maximum of a part of a long text, about two minutes."""

_NEVER_LAST = re.compile(rf"(?:\b(?:{'|'.join(TITLES)}|St|Dr|No|Nos|pp?|[A-Z])|\b(?:e\.g|i\.e|et al))\.$")
_ABBREVIATED = re.compile(rf"\b(?:{one_of(ENDINGS)})\.$")
_COUNTED = re.compile(rf"\b(?:{one_of(COUNTED)})\.$")
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*\s+|\n\s*\n")
_CLAUSE_END = re.compile(r"[,;:–—)…]+[\"'”’]*\s+|\s[-–—]+\s")


def sentences(text: str) -> list[str]:
    """Cut ``text`` after full stops, question and exclamation marks and at empty lines; not after "Dr." or initials."""
    found: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        before = text[start : match.end()].rstrip()
        after = text[match.end() : match.end() + 1]
        if "\n" not in match[0] and (_NEVER_LAST.search(before[-12:]) or after.islower()):
            continue
        following = text[match.end() : match.end() + 20].partition(" ")[0]
        counted = following[:1].isdigit() and _COUNTED.search(before[-12:])
        if counted or (_ABBREVIATED.search(before[-12:]) and not begins_sentence(following)):
            continue
        if before.strip():
            found.append(before.strip())
        start = match.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def chunks(text: str, seconds: Callable[[str], float], budget: float, first_budget: float | None = None) -> list[str]:
    """Cut ``text`` into as few chunks of whole sentences as possible, of at most ``budget`` seconds each; see
    :func:`packed`. ``seconds`` estimates the duration of a piece; it is asked once for each."""
    once = cache(seconds)
    found = packed(sentences(text), lambda parts: sum(map(once, parts)), budget, first_budget)
    return [" ".join(parts) for parts in found]


def has_letters(text: str) -> bool:
    """Whether ``text`` has letters or digits, without which there is nothing to speak."""
    return any(map(str.isalnum, text))


def spoken_chunks(text: str, seconds: Callable[[str], float], budget: float) -> list[str]:
    """As :func:`chunks`. Raises :class:`TextError` for a text without letters and digits."""
    if not has_letters(text):
        raise TextError("There is nothing to speak in this text; type a sentence.")
    return chunks(text, seconds, budget)


def packed(
    whole: Sequence[str], seconds: Callable[[list[str]], float], budget: float, first_budget: float | None = None
) -> list[list[str]]:
    """Gather sentences, the ``whole`` ones, in as few groups as possible, of at most ``budget`` seconds each. A
    sentence over the budget is cut at commas and the like, and a clause over the budget at words. ``first_budget`` is a
    smaller budget for the first group, for an earlier start; it cuts sentences only at commas."""
    limit = min(budget, first_budget or budget)
    found: list[list[str]] = []
    pending: list[str] = []
    queue = list(whole)[::-1]
    while queue:
        may_stop()
        piece = queue.pop()
        if seconds([*pending, piece]) <= limit:
            pending.append(piece)
            continue
        if pending:
            found.append(pending)
            pending, limit = [], budget
            queue.append(piece)
            continue
        ends = [0, *(match.end() for match in _CLAUSE_END.finditer(piece)), len(piece)]
        parts = [part for start, end in pairwise(ends) if (part := piece[start:end].strip())]
        if len(parts) == 1 and seconds([piece]) > budget:
            parts = _shorten(piece, lambda one: seconds([one]), budget)
        if len(parts) > 1:
            queue.extend(parts[::-1])
        else:
            found.append([piece])
            limit = budget
    return [*found, pending] if pending else found


def _shorten(piece: str, seconds: Callable[[str], float], budget: float) -> list[str]:
    """Cut ``piece`` into even runs of words within the budget; cut a single word between characters."""
    words = piece.split()
    if len(words) > 1:
        count = min(len(words), int(seconds(piece) / budget) + 1)
        return [" ".join(words[len(words) * n // count : len(words) * (n + 1) // count]) for n in range(count)]
    if len(piece) > LONGEST_WORD:
        return [piece[start : start + LONGEST_WORD] for start in range(0, len(piece), LONGEST_WORD)]
    half = len(piece) // 2
    return [piece[:half], piece[half:]] if half > 10 else [piece]


@typed
def parts(text: str, longest: Count = PART_CHARACTERS) -> tuple[str, ...]:
    """A long text in parts of whole sentences, at paragraphs where possible, of at most ``longest`` characters."""
    found: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n\s*", text):
        for one in chunks(paragraph, lambda part: len(part) + 1, longest):
            # "* * *" cannot be spoken alone.
            if found and (len(found[-1]) + len(one) < longest or not all(map(WORD.search, (one, found[-1])))):
                found[-1] += f"\n\n{one}"
            else:
                found.append(one)
    return tuple(found)


LARGEST_TEXT = 1 << 24
"""Maximum size of a text file in bytes."""
MOST_NAMED = 8
"""Maximum number of characters or words named in a sentence for the user."""


def require_words(text: object) -> None:
    """Raise :class:`TextError` for an empty text, or none."""
    if not isinstance(text, str):
        raise TextError(f"text must be a text, not {shown(text)}.")
    if not text.strip():
        raise TextError("There is no text to speak; type at least one word.")


def require_text(text: str) -> None:
    """Raise :class:`TextError` for an empty text and for more than :data:`MOST_CHARACTERS`."""
    require_words(text)
    if len(text) > MOST_CHARACTERS:
        raise TextError(
            f"The text has {grouped(len(text))} characters, and {grouped(MOST_CHARACTERS)} is the limit; speak it in "
            "several parts (paretone.parts), from a file with paretone speak, or in the window."
        )


def nothing_to_say(dropped: tuple[str, ...]) -> str:
    """Explain why a text without words cannot be spoken; ``dropped`` are its characters without sound."""
    if dropped:
        return f"Nothing in the text can be spoken ({name_characters(dropped)}); type English words."
    return "The text has no words, only punctuation; type at least one word."


def skipped(characters: tuple[str, ...]) -> tuple[str, ...]:
    """Note on characters without sound, if any."""
    return (f"Skipped unsupported characters: {name_characters(characters)}.",) if characters else ()


def name_characters(characters: tuple[str, ...]) -> str:
    """List characters for a sentence: up to three with Unicode names, else the first ones and the number of others."""
    if len(characters) <= 3:
        return ", ".join(f"{one} ({unicodedata.name(one, f'U+{ord(one):04X}').lower()})" for one in characters)
    rest = len(characters) - MOST_NAMED
    return " ".join(characters[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


ENGLISH, CHINESE = "en", "zh"
FOREIGN_SHARE = 0.3
"""Maximum share of letters in other scripts; texts with more are refused."""

HAN = re.compile("[\u4e00-\u9fff]")
WORD = re.compile(r"[^\W\d_]+")

_ENGLISH = frozenset(listed("frequent English"))
_FOREIGN = {
    language: frozenset(listed(f"frequent {language}"))
    for language in ("German", "French", "Spanish", "Italian", "Portuguese", "Dutch")
}
"""Frequent words that identify languages in Latin letters, except words frequent in English: "no", "come", "do"."""
_FEWEST = 3
"""Minimum number of different frequent words that identifies a language."""


def language_of(text: str, able: str) -> str:
    """:data:`CHINESE` for a text with Chinese characters, otherwise :data:`ENGLISH`. Raises :class:`TextError`, which
    states what the model is ``able`` to do, for other scripts, and for texts in Latin letters whose frequent words are
    of another language."""
    if found := other_language(text):
        raise TextError(f"The text {found}, but {able}; type another text, or choose another model.")
    return CHINESE if HAN.search(text) else ENGLISH


def is_english(text: str) -> bool:
    """Whether English is likelier than not: stricter than :func:`language_of`, which refuses a text only if sure."""
    return not (HAN.search(text) or other_language(text, 2))


def unread_transcript(transcript: str) -> str:
    """Sentence on why an English-only model cannot take the ``transcript`` of a recording, or ``""``."""
    found = other_language(transcript) or ("is in Chinese" if HAN.search(transcript) else "")
    if found:
        return (
            f"The transcript of the recording {found}, but the bundled models read only English; choose a recording in "
            "English, or another model."
        )
    if transcript.strip() and not has_letters(transcript):
        return "The transcript of the recording has no words; type the words spoken in it."
    return ""


def other_language(text: str, fewest: int = _FEWEST) -> str:
    """Predicate of a sentence about a text in another language or script than English or Chinese, or ``""``. Without
    any frequent English word, ``fewest`` of another language decide."""
    text = unicodedata.normalize("NFKC", text)  # Letters of full width and of mathematics are Latin.
    scripts = Counter(map(script_of, filter(str.isalpha, text)))
    foreign = Counter({name: count for name, count in scripts.items() if name not in ("LATIN", "CJK", "GREEK")})
    if foreign.total() > FOREIGN_SHARE * scripts.total():
        return f"is written in {foreign.most_common(1)[0][0].capitalize()} script"
    if HAN.search(text):
        return ""
    words = WORD.findall(text)
    # Only lower-case words count: English texts have foreign names (Los Angeles, Ursula von der Leyen).
    plain, said = set(filter(str.islower, words)), set(map(str.lower, words))
    counts = {name: len(frequent & plain) for name, frequent in _FOREIGN.items()}
    likeliest = max(counts, key=counts.__getitem__)
    english = len(_ENGLISH & said)
    if counts[likeliest] >= (max(_FEWEST, 2 * english) if english else fewest):
        return f"looks like {likeliest}"
    return ""


def script_of(letter: str) -> str:
    return unicodedata.name(letter, "UNKNOWN").split()[0]


_MARKUP = re.compile(rf"{ELEMENT}|<!--|<!DOCTYPE\b|<\?xml\b|<!\[CDATA\[|{ENTITY.pattern}")
_NAMED = 3
"""Kinds of markup named in a note."""
_LONGEST = 30


def markup_notes(text: str, understood: Collection[str] = ()) -> tuple[str, ...]:
    """Note on the markup in ``text``, if any, except elements that the model has ``understood``."""
    found = [one[0] for one in _MARKUP.finditer(text) if one["name"] not in understood]
    if not found:
        return ()
    named = named_first([shortened(one, _LONGEST) for one in dict.fromkeys(found)], _NAMED)
    return (
        f"The text has markup ({named}), which no model here reads: it is spoken as words or left out. Take it out; "
        "for a pause, write a comma, a full stop or a dash.",
    )
