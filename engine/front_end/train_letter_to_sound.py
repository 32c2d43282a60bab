"""Make ``resources/lexicon/letter_to_sound.npz`` from the CMU dictionary: ``python -m engine.front_end.train_letter_to_sound``.

Every twentieth word (by a checksum of its spelling, so that the choice is the same everywhere) is held out; ``--evaluate``
measures the model in the file on those words instead of training.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.front_end.letter_to_sound import BITS, BOUNDARY, MODEL, LetterToSound
from engine.front_end.lexicon import DICTIONARY, Phones, read_entries
from engine.front_end.phones import fold_arpabet
from engine.paths import resource

ORDER = 7
SMALLEST_COUNTS = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2}
"""N-grams seen less often are left to the back-off; the size of the file is decided here."""
SMALLEST_UNIT_COUNT = 12
"""Units seen less often are odd spellings or abbreviations; words that need them are not learnt from."""
ALIGNMENT_ROUNDS = 6
MOST_PHONES = 2
"""A letter stands for at most so many phones (x: k s)."""

Word = tuple[str, Phones]


def held_out(word: str) -> bool:
    """Whether ``word`` is kept from training."""
    return zlib.crc32(word.encode()) % 20 == 0


def dictionary_words() -> dict[str, list[Phones]]:
    """All pronunciations of the dictionary's plain words (letters a to z only)."""
    words: dict[str, list[Phones]] = defaultdict(list)
    for word, entry in read_entries(resource(*DICTIONARY)):
        if re.fullmatch("[a-z]+", word):
            words[word].append(tuple(fold_arpabet(symbol) for symbol in entry.split()))
    return words


def align(words: Sequence[Word]) -> list[list[tuple[str, Phones]]]:
    """Share every word's phones out over its letters, zero to two each: Viterbi training, started from how much more often
    a letter and a phone occur in one word than chance would have it. Words that cannot be shared out so are left out."""
    costs = _association(words)
    for _ in range(ALIGNMENT_ROUNDS):
        aligned = [path for letters, phones in words if (path := _best_path(letters, phones, costs))]
        counts = Counter(pair for path in aligned for pair in path)
        letters = Counter(letter for path in aligned for letter, _ in path)
        costs = {pair: -float(np.log(count / letters[pair[0]])) for pair, count in counts.items()}
    return aligned


def _association(words: Sequence[Word]) -> dict[tuple[str, Phones], float]:
    together: Counter[tuple[str, str]] = Counter()
    letters: Counter[str] = Counter()
    phones: Counter[str] = Counter()
    for spelling, sounds in words:
        letters.update(set(spelling))
        phones.update(set(sounds))
        together.update((letter, phone) for letter in set(spelling) for phone in set(sounds))
    costs: dict[tuple[str, Phones], float] = {}
    for (letter, phone), count in together.items():
        costs[letter, (phone,)] = -float(np.log(count * len(words) / (letters[letter] * phones[phone])))
    for letter in letters:
        costs[letter, ()] = 1.0
        for first in phones:
            for second in phones:
                if (letter, (first,)) in costs and (letter, (second,)) in costs:
                    costs[letter, (first, second)] = 2.0 + costs[letter, (first,)] + costs[letter, (second,)]
    return costs


def _best_path(letters: str, phones: Phones, costs: dict[tuple[str, Phones], float]) -> list[tuple[str, Phones]] | None:
    infinity = float("inf")
    columns = len(phones) + 1
    reached = [0.0] + [infinity] * len(phones)
    steps: list[list[int]] = []
    for position, letter in enumerate(letters):
        left = len(letters) - position - 1
        following = [infinity] * columns
        taken = [0] * columns
        for start, cost in enumerate(reached):
            if cost == infinity:
                continue
            for length in range(min(MOST_PHONES, len(phones) - start) + 1):
                end = start + length
                if len(phones) - end > MOST_PHONES * left:
                    continue
                total = cost + costs.get((letter, phones[start:end]), 12.0)
                if total < following[end]:
                    following[end], taken[end] = total, length
        reached = following
        steps.append(taken)
    if reached[-1] == infinity:
        return None
    path: list[tuple[str, Phones]] = []
    end = len(phones)
    for letter, taken in zip(reversed(letters), reversed(steps), strict=True):
        start = end - taken[end]
        path.append((letter, phones[start:end]))
        end = start
    return path[::-1]


def train(words: Sequence[Word], path: Path) -> None:
    """Align, count, smooth and write the model."""
    aligned = align(words)
    counts = Counter(pair for word in aligned for pair in word)
    units = sorted(pair for pair, count in counts.items() if count >= SMALLEST_UNIT_COUNT)
    if len(units) + BOUNDARY >= 1 << BITS:
        raise ValueError(f"{len(units)} units do not fit {BITS} bits")
    numbers = {pair: number for number, pair in enumerate(units, BOUNDARY + 1)}
    sequences = [[numbers[pair] for pair in word] for word in aligned if all(pair in numbers for pair in word)]
    ngrams, probabilities, contexts, back_offs = kneser_ney(sequences, ORDER)
    np.savez_compressed(
        path,
        order=ORDER,
        units=np.array([" ".join((letter, *phones)) for letter, phones in units]),
        ngrams=np.diff(ngrams, prepend=np.uint64(0)),
        probabilities=probabilities.astype(np.float16),
        contexts=np.diff(contexts, prepend=np.uint64(0)),
        back_offs=back_offs.astype(np.float16),
    )
    print(f"{len(sequences)} pronunciations, {len(units)} units, {len(ngrams)} n-grams: {path}")


def kneser_ney(
    sequences: Sequence[Sequence[int]], order: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Interpolated Kneser-Ney with one discount per order (Ney, Essen and Kneser 1994).

    Returns packed n-grams of all orders, ascending, with the natural logarithms of their probabilities, and packed
    contexts, ascending, with those of their back-off weights.
    """
    counted = _continuation_counts(sequences, order)
    shift = np.uint64(BITS)
    units = (1 << BITS) - 1
    previous_keys, previous = np.array([], np.uint64), np.array([])
    all_ngrams, all_probabilities, all_contexts, all_back_offs = [], [], [], []
    for length in range(1, order + 1):
        keys, counts = counted[length]
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        discount = once / (once + 2 * twice)
        contexts, belonging = np.unique(keys >> shift, return_inverse=True)
        totals = np.bincount(belonging, weights=counts)
        kept = counts >= SMALLEST_COUNTS[length]
        keys, belonging = keys[kept], belonging[kept]
        direct = (counts[kept] - discount) / totals[belonging]
        back_off = 1.0 - np.bincount(belonging, weights=direct, minlength=len(contexts))
        if length == 1:
            lower = np.full(len(keys), 1.0 / len(keys))
        else:
            lower = _backed_off(keys, length - 1, all_ngrams, all_probabilities, all_contexts, all_back_offs)
        probability = direct + back_off[belonging] * lower
        used = np.bincount(belonging, minlength=len(contexts)) > 0
        all_ngrams.append(keys)
        all_probabilities.append(np.log(probability))
        all_contexts.append(contexts[used])
        all_back_offs.append(np.log(back_off[used]))
    del previous_keys, previous, units
    ngrams, contexts = np.concatenate(all_ngrams), np.concatenate(all_contexts)
    by_ngram, by_context = np.argsort(ngrams), np.argsort(contexts)
    return (
        ngrams[by_ngram],
        np.concatenate(all_probabilities)[by_ngram],
        contexts[by_context],
        np.concatenate(all_back_offs)[by_context],
    )
