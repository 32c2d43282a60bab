"""Training text: a small weighted grammar over everyday words, and word salad for rare pairs of sounds.

One seeded generator draws everything, so a seed gives the same sentences on every machine. Two thirds of the sentences
come from the grammar; one third is random dictionary words between function words, for phone sequences that everyday
sentences lack. Words and rules are in ``resources/sentences``. No sentence shares a run of :data:`SHARED_RUN` words
with a test sentence.

A second grammar, and the lines of ``resources/sentences/everyday.txt``, are texts for reading aloud: news, messages,
questions, dialogue, lists, numbers, dates and prices. Numbers are in digits, as people type them.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from paretone.front_end.lexicon import default_lexicon
from paretone.paths import resource

Forms = tuple[tuple[int, str], ...]
"""Weighted expansions of a symbol; ``<name>`` in a form is another symbol."""


@dataclass(frozen=True)
class Grammar:
    """Lists of words, drawn uniformly (``_`` is a blank), and rules, drawn by weight."""

    words: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, Forms]

    def expand(self, symbol: str, draw: random.Random) -> str:
        """A drawn form of ``symbol`` with all its symbols expanded."""
        if symbol in self.words:
            return draw.choice(self.words[symbol]).replace("_", " ")
        weights, forms = zip(*self.rules[symbol], strict=True)
        (form,) = draw.choices(forms, weights)
        return re.sub(r"<([^>]+)>", lambda slot: self.expand(slot[1], draw), form)


PROMPT = "We will meet at the old harbor, and talk about the weather."
"""Sentence of the bundled voices; excluded from the training sentences."""
SHORTEST, LONGEST = 16, 72
"""Length limits of a sentence in characters: about one to five seconds at the voices' pace."""
SHARED_RUN = 4
"""Sentences with this many consecutive words of a test sentence are dropped."""
SALAD_SHARE = 1 / 3

_FUNCTION_WORDS = tuple("the a of and to in with for is on or no as at from by was his that".split())


@cache
def grammar(*names: str) -> Grammar:
    """Grammar of the files ``resources/sentences/NAME.toml``; later files replace words and rules of earlier ones."""
    words: dict[str, tuple[str, ...]] = {}
    rules: dict[str, Forms] = {}
    for name in names:
        data = tomllib.loads(resource("sentences", f"{name}.toml").read_text(encoding="utf-8"))
        words |= {word: tuple(forms.split()) for word, forms in data["words"].items()}
        for rule, forms in data["rules"].items():
            rules[rule] = tuple((1, form) if isinstance(form, str) else (form[0], form[1]) for form in forms)
    return Grammar(words, rules)


def normalised_words(sentence: str) -> tuple[str, ...]:
    """Words of a sentence in lower case, without punctuation except apostrophes."""
    return tuple(re.findall(r"[a-z']+", sentence.lower()))


@cache
def _dictionary() -> tuple[str, ...]:
    """Words of three to nine letters in the bundled pronunciation dictionary, in alphabetical order."""
    return tuple(word for word in default_lexicon().words() if re.fullmatch(r"[a-z]{3,9}", word))


def finished(text: str) -> str:
    """``text`` with *an* before vowels and an initial capital."""
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return text[0].upper() + text[1:]


def training_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences, reproducible for the same arguments. None shares :data:`SHARED_RUN` consecutive
    words with a sentence of ``excluded``."""

    def plain(draw: random.Random) -> str:
        if draw.random() >= SALAD_SHARE:
            return grammar("grammar").expand("sentence", draw)
        words = []
        for _ in range(draw.randint(3, 6)):
            if draw.random() < 0.5:
                words.append(draw.choice(_FUNCTION_WORDS))
            words.append(draw.choice(_dictionary()))
        return " ".join(words) + "."

    return _different(count, seed, excluded, plain, SHORTEST, LONGEST)


def _different(
    count: int, seed: int, excluded: Iterable[str], plain: Callable[[random.Random], str], shortest: int, longest: int
) -> list[str]:
    """``count`` different sentences drawn by ``plain``, of ``shortest`` to ``longest`` characters."""
    draw = random.Random(seed)
    forbidden = {run for sentence in excluded for run in runs(sentence)}
    found: dict[str, None] = {}
    while len(found) < count:
        sentence = finished(plain(draw))
        if shortest <= len(sentence) <= longest and forbidden.isdisjoint(runs(sentence)):
            found[sentence] = None
    return list(found)


def runs(sentence: str) -> list[tuple[str, ...]]:
    """Every :data:`SHARED_RUN` consecutive words of a sentence."""
    words = normalised_words(sentence)
    return [words[start : start + SHARED_RUN] for start in range(len(words) - SHARED_RUN + 1)]


SHORTEST_EVERYDAY, LONGEST_EVERYDAY = 4, 150
"""Length limits of an everyday sentence in characters: up to about ten seconds."""
TEMPLATE_SHARE = 0.3
"""Share of a corpus drawn from the first grammar."""


def written_sentences() -> tuple[str, ...]:
    return tuple(resource("sentences", "everyday.txt").read_text(encoding="utf-8").splitlines())


def everyday_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` everyday sentences; none shares a run of words with ``excluded``, as in :func:`training_sentences`."""
    plain = partial(grammar("grammar", "everyday").expand, "everyday")
    return _different(count, seed, excluded, plain, SHORTEST_EVERYDAY, LONGEST_EVERYDAY)


def corpus_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different, shuffled sentences for a corpus: the written ones, a share of :data:`TEMPLATE_SHARE` from
    the first grammar, and everyday ones. None shares a run of words with a sentence of ``excluded``."""
    unwanted = list(excluded)
    forbidden = {run for sentence in unwanted for run in runs(sentence)}
    written = [one for one in written_sentences() if forbidden.isdisjoint(runs(one))][:count]
    template = min(round(TEMPLATE_SHARE * count), count - len(written))
    everyday = count - len(written) - template
    sentences = [*written, *training_sentences(template, seed, unwanted), *everyday_sentences(everyday, seed, unwanted)]
    random.Random(seed).shuffle(sentences)
    return sentences
