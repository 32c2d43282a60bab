"""What people have read aloud: news, messages, questions, dialogue, lists, numbers, dates and prices.

A second grammar next to that of :mod:`paretone.training.sentences`, whose words it shares, and the lines of
``resources/sentences/everyday.txt``, which were written for this. Figures are in digits, as people type them; the text
front end turns them into words. The same seed gives the same sentences on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from paretone.paths import resource
from paretone.training.sentences import finished, grammar, runs, training_sentences

SHORTEST, LONGEST = 4, 150
"""Length limits of an everyday sentence in characters: up to some ten seconds."""
TEMPLATE_SHARE = 0.3
"""Share of a corpus that is drawn from the grammar of :mod:`paretone.training.sentences`."""


def written_sentences() -> tuple[str, ...]:
    """The lines of ``resources/sentences/everyday.txt``."""
    return tuple(resource("sentences", "everyday.txt").read_text(encoding="utf-8").splitlines())


def everyday_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences of the grammar; none shares a run of words with a sentence of ``excluded``, as in
    :func:`paretone.training.sentences.training_sentences`."""
    draw = random.Random(seed)
    forbidden = {run for sentence in excluded for run in runs(sentence)}
    found: dict[str, None] = {}
    while len(found) < count:
        sentence = finished(grammar("grammar", "everyday").expand("everyday", draw))
        if SHORTEST <= len(sentence) <= LONGEST and forbidden.isdisjoint(runs(sentence)):
            found[sentence] = None
    return list(found)


def corpus_sentences(count: int, seed: int = 1, excluded: Iterable[str] = ()) -> list[str]:
    """``count`` different sentences for a corpus, shuffled: those that were written, a share of
    :data:`TEMPLATE_SHARE` from the grammar of :mod:`paretone.training.sentences`, and everyday ones.

    None shares a run of words with a sentence of ``excluded``.
    """
    unwanted = list(excluded)
    forbidden = {run for sentence in unwanted for run in runs(sentence)}
    written = [one for one in written_sentences() if forbidden.isdisjoint(runs(one))][:count]
    template = min(round(TEMPLATE_SHARE * count), count - len(written))
    everyday = count - len(written) - template
    sentences = [*written, *training_sentences(template, seed, unwanted), *everyday_sentences(everyday, seed, unwanted)]
    random.Random(seed).shuffle(sentences)
    return sentences
