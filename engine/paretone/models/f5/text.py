"""Text to token ids, like the official front end (``convert_char_to_pinyin``, ``get_tokenizer``).

Tokens are characters, and syllables of Chinese in tone-numbered pinyin. The official code first cuts any text into
words with a Chinese segmenter, and adds a space before a word of ASCII letters that follows something else: "$5"
becomes "$ 5", "naïve" becomes "naï ve". The released models were trained on that, so it is kept. The segmenter's rules
for texts without Chinese are implemented here; ``rjieba`` and ``pypinyin`` are imported only for texts with Chinese.
Torch-free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paretone.errors import CheckpointError, TextError
from paretone.extras import how_to_add
from paretone.reading import first_line, read_text, shortened, shown

_TRANSLATED = str.maketrans({";": ",", "“": '"', "”": '"', "‘": "'", "’": "'"})
_NO_SPACE_AFTER = " :'\""
_IDEOGRAPH = re.compile("[\u3100-\u9fff]")
"""Characters before which the official code puts a space."""
_CHINESE = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\ue000-\uf8ff\uf900-\ufaff\U00020000-\U0010ffff]")
"""Characters that the segmenter joins into words or that have a pinyin."""
_BLOCK = re.compile(r"([a-zA-Z0-9+#&._%-]+|\r\n)")
_DICTIONARY = re.compile(r"(AT&T|C\+\+|c\+\+|C#|c#)")
"""Dictionary words of the segmenter that its other rules would cut differently."""
_WORD = re.compile(r"([a-zA-Z0-9]+(?:[._-][a-zA-Z0-9]+)*%?)")


def finished_transcript(transcript: str) -> str:
    """Complete a prompt's transcript: add ". " unless it ends in that or in "。". Raises :class:`TextError` if it is
    empty."""
    if not transcript.strip():
        raise TextError("The voice has no transcript; write down what the reference recording says.")
    if transcript.endswith((". ", "。")):
        return transcript
    return f"{transcript} " if transcript.endswith(".") else f"{transcript}. "


def spaced_transcript(transcript: str) -> str:
    """The finished transcript as it precedes the text: with one more space after an ASCII character."""
    return f"{transcript} " if transcript[-1].isascii() else transcript


def pinyin_tokens(text: str) -> list[str]:
    """Official tokens of ``text``. Raises :class:`TextError` if it has Chinese and the packages for that are not
    installed."""
    tokens: list[str] = []
    for word in _words(text.translate(_TRANSLATED)):
        if word.isascii():
            if len(word) > 1 and tokens and tokens[-1] not in _NO_SPACE_AFTER:
                tokens.append(" ")
            tokens.extend(word)
        elif len(word.encode()) == 3 * len(word):
            for character, syllable in zip(word, _syllables(word), strict=True):
                tokens.extend((" ", syllable) if _IDEOGRAPH.match(character) else (syllable,))
        else:
            for character in word:
                if _IDEOGRAPH.match(character):
                    tokens.extend((" ", *_syllables(character)))
                else:
                    tokens.append(character)
    return tokens


def _words(text: str) -> Iterable[str]:
    if not _CHINESE.search(text):
        return words_without_chinese(text)
    try:
        import rjieba
    except ImportError:
        raise TextError(_lacking("rjieba")) from None
    return rjieba.cut(text)


def words_without_chinese(text: str) -> Iterable[str]:
    """Segments (jieba-rs 0.11) of a text without Chinese; joined, they are the text."""
    for index, block in enumerate(_BLOCK.split(text)):
        if index % 2 == 0:
            yield from block
        elif block == "\r\n":
            yield block
        else:
            for number, part in enumerate(_DICTIONARY.split(block)):
                yield from filter(None, [part] if number % 2 else _WORD.split(part))


def _syllables(word: str) -> Sequence[str]:
    """One token per character: its pinyin with the tone as a digit, or the character itself without pinyin."""
    if not _CHINESE.search(word):
        return word
    try:
        from pypinyin import Style, lazy_pinyin
    except ImportError:
        raise TextError(_lacking("pypinyin")) from None

    def syllables(part: str) -> list[str]:
        return lazy_pinyin(part, style=Style.TONE3, tone_sandhi=True)

    found = syllables(word)
    return found if len(found) == len(word) else ["".join(syllables(character)) for character in word]


def _lacking(package: str) -> str:
    return (
        f"The text or the voice's transcript holds Chinese characters, for which the package {package} is needed; "
        f"{how_to_add('chinese')}"
    )


@dataclass(frozen=True)
class Encoded:
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    """Tokens replaced by a space, each once, in order."""

    @property
    def note(self) -> str:
        """Sentence for the user on the dropped characters."""
        shown = " ".join(self.unknown[:20]) + (" …" if len(self.unknown) > 20 else "")
        characters = "this character" if len(self.unknown) == 1 else "these characters"
        return f"The model does not know {characters}, dropped: {shown}"


class Vocabulary:
    """Tokens and their ids. Unknown tokens get id 0, the space in released vocabularies."""

    def __init__(self, ids: Mapping[str, int], twice: Mapping[str, tuple[int, int]] = {}) -> None:
        """``twice``: repeated tokens, with two of their line numbers."""
        self._ids = dict(ids)
        self._twice = dict(twice)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a ``vocab.txt`` with one token per line (a space is one); the line number is its id. Raises
        :class:`CheckpointError`."""
        try:
            text = read_text(path)
        except FileNotFoundError:
            raise CheckpointError(f"The vocabulary {path} is missing; it belongs next to the checkpoint.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointError(f"The vocabulary {path} cannot be read as UTF-8 text: {first_line(error)}.") from None
        lines = text.removesuffix("\n").split("\n")
        if lines == [""]:
            raise CheckpointError(f"The vocabulary {path} is empty; download it again.")
        ids: dict[str, int] = {}
        twice = {}
        for number, token in enumerate(lines):
            if token in ids:
                twice[token] = ids[token] + 1, number + 1
            ids[token] = number
        return cls(ids, twice)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def require_entries(self, entries: int, where: str) -> None:
        """Raise :class:`CheckpointError` unless the vocabulary has the model's number of different entries."""
        if self._twice:
            token, (first, second) = next(iter(self._twice.items()))
            more = f" (and {len(self._twice) - 1} more come twice)" if len(self._twice) > 1 else ""
            raise CheckpointError(
                f"{where} has the entry {shown(token)} twice, in lines {first} and {second}{more}, so that it has "
                f"{len(self)} different entries for {entries} of the checkpoint; use the vocab.txt that belongs to the "
                "checkpoint."
            )
        if len(self) != entries or max(self._ids.values()) >= entries:
            raise CheckpointError(
                f"{where} has {len(self)} entries, but the checkpoint was made for {entries}; "
                "use the vocab.txt that belongs to the checkpoint."
            )

    def encode(self, text: str, tokenizer: str = "pinyin") -> Encoded:
        """Ids of ``text``: of its pinyin tokens (``pinyin``, ``custom``), or of its characters (``char``)."""
        tokens = tuple(text) if tokenizer == "char" else tuple(pinyin_tokens(text))
        unknown = tuple(dict.fromkeys(token for token in tokens if token not in self._ids))
        return Encoded(tokens, tuple(self._ids.get(token, 0) for token in tokens), unknown)


def encode(text: str, vocabulary: Vocabulary | None, tokenizer: str) -> Encoded:
    """Ids of ``text`` by a model's ``tokenizer``; without a ``vocabulary`` its bytes in UTF-8."""
    if vocabulary is None:
        return Encoded(tuple(text), tuple(text.encode()))
    return vocabulary.encode(text, tokenizer)


def require_readable(transcript: str, encoded: Encoded) -> None:
    """Raise :class:`TextError` if the model knows no letter or digit of a voice's ``transcript``."""
    try:
        require_speakable(transcript, encoded)
    except TextError:
        raise TextError(
            f"The model knows no letter or digit of the voice's transcript, “{shortened(transcript.strip())}”; choose "
            "a recording in a language that it speaks."
        ) from None


def require_speakable(text: str, encoded: Encoded) -> None:
    """Raise :class:`TextError` if nothing in ``text`` can be spoken."""
    if not text.strip():
        raise TextError("There is no text to speak; type a sentence.")
    unknown = set(encoded.unknown)
    if not any(token not in unknown and any(map(str.isalnum, token)) for token in encoded.tokens):
        dropped = f" ({' '.join(encoded.unknown[:10])})" if encoded.unknown else ""
        raise TextError(
            f"The model knows no letter or digit of this text{dropped}; type words in a language that it speaks."
        )


# Cut long text like F5 (``infer/utils_infer.py``).
LONGEST_SECONDS = 22.0
"""Maximum duration of prompt and new speech in one piece, at the prompt's rate of speech."""
DEFAULT_MAXIMUM = 135
"""Default bytes per piece, without a prompt."""

_SENTENCE_ENDS = re.compile(r"(?<=[;:,.!?])\s+|(?<=[；：，。！？])")


def maximum_bytes(transcript: str, prompt_seconds: float, speed: float = 1.0) -> int:
    """UTF-8 bytes per piece: what the prompt's speaker says in the time left after the prompt. Zero or less for prompts
    of 22 s and more, which makes every sentence its own piece."""
    return int(len(transcript.encode()) / prompt_seconds * (LONGEST_SECONDS - prompt_seconds) * speed)


def split(text: str, maximum: int = DEFAULT_MAXIMUM, break_long: bool = False) -> list[str]:
    """Cut ``text`` after punctuation and join clauses into stripped pieces of at most ``maximum`` bytes.

    A longer clause is kept whole, as in the official code, unless ``break_long`` is set: then it is cut between words,
    or between characters without spaces.
    """
    clauses = _SENTENCE_ENDS.split(text)
    if break_long and maximum > 0:
        clauses = [part for clause in clauses for part in _broken(clause, maximum)]
    pieces = []
    current = ""
    for clause in clauses:
        if len(current.encode()) + len(clause.encode()) <= maximum:
            current += _spaced(clause)
        else:
            if current:
                pieces.append(current.strip())
            current = _spaced(clause)
    if current:
        pieces.append(current.strip())
    return pieces


def split_for_streaming(text: str, maximum: int, break_long: bool = False) -> list[str]:
    """:func:`split` with a short beginning, for an earlier start: the first piece is cut again at half the maximum and
    then its first again at a quarter, as the official socket server does."""
    pieces = split(text, maximum, break_long)
    for part in (2, 4):
        if pieces:
            pieces = [*split(pieces[0], maximum // part), *pieces[1:]]
    return pieces


def _spaced(clause: str) -> str:
    return f"{clause} " if clause and clause[-1].isascii() else clause


def _broken(clause: str, maximum: int) -> Iterable[str]:
    """``clause`` in parts of at most ``maximum`` bytes (at least a character), cut between words if it has any."""
    words = re.findall(r"\S+\s*", clause) if len(clause.encode()) > maximum else [clause]
    part = ""
    for word in words:
        for token in [word] if len(word.encode()) <= maximum else word:
            if part and len((part + token).strip().encode()) > maximum:
                yield part.strip()
                part = ""
            part += token
    yield part.strip() if len(words) > 1 else part
