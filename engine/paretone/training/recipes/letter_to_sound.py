"""Make the letter-to-sound model from the CMU dictionary: ``python -m paretone.training.recipes.letter_to_sound``.

It writes ``resources/lexicon/letter_to_sound.npz``, the same bytes every time, in about a minute of one core. Every
twentieth word (by a checksum of its spelling, so that the choice is the same everywhere) is held out; ``--evaluate``
measures the model in the file on those words instead of training.

Measured on the 5,801 held-out words, against the nearest listed pronunciation: phone error rate 0.072, word accuracy
0.699; together with the rules of :mod:`paretone.front_end.pronunciation`, 0.070 and 0.709.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paretone.front_end.letter_to_sound import BITS, BOUNDARY, MODEL, LetterToSound
from paretone.front_end.lexicon import DICTIONARY, Phones, read_entries
from paretone.front_end.phones import fold_arpabet
from paretone.paths import resource

ORDER = 7
SMALLEST_COUNTS = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2}
"""N-grams seen less often are left to the back-off; the size of the file is decided here."""
SMALLEST_UNIT_COUNT = 12
"""Units seen less often are odd spellings or abbreviations; words that need them are not learnt from."""
ALIGNMENT_ROUNDS = 6
MOST_PHONES = 2
"""A letter stands for at most this many phones (x: k s)."""

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
    """Share every word's phones out over its letters, zero to two each: Viterbi training, started from how much more
    often a letter and a phone occur in one word than chance would have it. Words that cannot be shared out so are left
    out."""
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


def kneser_ney(sequences: Sequence[Sequence[int]], order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Interpolated Kneser-Ney with one discount per order (Ney, Essen and Kneser, 1994).

    Returns packed n-grams of all orders, ascending, with the natural logarithms of their probabilities, and packed
    contexts, ascending, with those of their back-off weights.
    """
    orders: list[_Order] = []
    for length, (keys, counts) in enumerate(_counts(sequences, order), 1):
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        discount = once / (once + 2 * twice) if once and twice else 0.5
        contexts, compatibility = np.unique(keys >> np.uint64(BITS), return_inverse=True)
        totals = np.bincount(compatibility, weights=counts)
        kept = counts >= SMALLEST_COUNTS[length]
        keys, compatibility = keys[kept], compatibility[kept]
        direct = (counts[kept] - discount) / totals[compatibility]
        back_offs = 1.0 - np.bincount(compatibility, weights=direct, minlength=len(contexts))
        lower = _lower_order(keys, orders) if orders else np.full(len(keys), 1.0 / len(keys))
        probabilities = direct + back_offs[compatibility] * lower
        used = np.bincount(compatibility, minlength=len(contexts)) > 0
        orders.append(_Order(keys, probabilities, contexts[used], back_offs[used]))
    ngrams = np.concatenate([one.keys for one in orders])
    contexts = np.concatenate([one.contexts for one in orders])
    by_ngram, by_context = np.argsort(ngrams), np.argsort(contexts)
    return (
        ngrams[by_ngram],
        np.log(np.concatenate([one.probabilities for one in orders]))[by_ngram],
        contexts[by_context],
        np.log(np.concatenate([one.back_offs for one in orders]))[by_context],
    )


@dataclass(frozen=True)
class _Order:
    """The smoothed n-grams of one length, packed and ascending."""

    keys: np.ndarray
    probabilities: np.ndarray
    contexts: np.ndarray
    back_offs: np.ndarray


def _counts(sequences: Sequence[Sequence[int]], order: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Packed n-grams with their counts, for lengths 1 to ``order``: how often for the longest and for those at the
    start of a word, else after how many different units (the continuation counts of Kneser and Ney)."""
    stream = np.concatenate([[BOUNDARY, *sequence, BOUNDARY] for sequence in sequences]).astype(np.uint64)
    word = np.repeat(np.arange(len(sequences)), [len(sequence) + 2 for sequence in sequences])
    windows = []
    for length in range(1, order + 1):
        size = len(stream) - length + 1
        packed = np.zeros(size, np.uint64)
        for offset in range(length):
            packed = packed << np.uint64(BITS) | stream[offset : offset + size]
        windows.append(np.unique(packed[word[:size] == word[length - 1 :]], return_counts=True))
    counted = []
    for length in range(1, order):
        longer, _ = windows[length]
        keys, counts = np.unique(longer & np.uint64((1 << BITS * length) - 1), return_counts=True)
        if length > 1:
            whole, often = windows[length - 1]
            starts = whole >> np.uint64(BITS * (length - 1)) == BOUNDARY
            keys, counts = np.concatenate([keys, whole[starts]]), np.concatenate([counts, often[starts]])
            ascending = np.argsort(keys)
            keys, counts = keys[ascending], counts[ascending]
        counted.append((keys, counts))
    return [*counted, windows[-1]]


def _lower_order(keys: np.ndarray, orders: Sequence[_Order]) -> np.ndarray:
    """Probabilities of packed n-grams of length ``len(orders) + 1`` without their first unit, backed off where
    unlisted."""
    found = np.zeros(len(keys), bool)
    weights, probabilities = np.ones(len(keys)), np.zeros(len(keys))
    for length in range(len(orders), 0, -1):
        one = orders[length - 1]
        shorter = keys & np.uint64((1 << BITS * length) - 1)
        place = np.searchsorted(one.keys, shorter).clip(max=len(one.keys) - 1)
        listed = ~found & (one.keys[place] == shorter)
        probabilities[listed] = weights[listed] * one.probabilities[place[listed]]
        found |= listed
        context = shorter >> np.uint64(BITS)
        place = np.searchsorted(one.contexts, context).clip(max=len(one.contexts) - 1)
        backed_off = ~found & (one.contexts[place] == context)
        weights[backed_off] *= one.back_offs[place[backed_off]]
    return probabilities


@dataclass(frozen=True)
class Evaluation:
    """Errors on the held-out words, each against the nearest of its listed pronunciations."""

    words: int
    wrong_words: int
    phones: int
    edits: int

    @property
    def phone_error_rate(self) -> float:
        return self.edits / self.phones

    @property
    def word_accuracy(self) -> float:
        return 1.0 - self.wrong_words / self.words


def evaluate(pronounce: Callable[[str], Phones], words: dict[str, list[Phones]]) -> Evaluation:
    """Measure ``pronounce`` on ``words`` with their listed pronunciations."""
    phones = edits = wrong = 0
    for word, listed in words.items():
        spoken = pronounce(word)
        distance, length = min((edit_distance(spoken, reference), len(reference)) for reference in listed)
        edits, phones, wrong = edits + distance, phones + length, wrong + (distance > 0)
    return Evaluation(len(words), wrong, phones, edits)


def edit_distance(first: Phones, second: Phones) -> int:
    """Smallest number of insertions, deletions and substitutions between two phone sequences."""
    row = list(range(len(second) + 1))
    for position, phone in enumerate(first, 1):
        diagonal, row[0] = row[0], position
        for column, other in enumerate(second, 1):
            diagonal, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, diagonal + (phone != other))
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--evaluate", action="store_true", help="measure the model on the held-out words; train nothing"
    )
    parser.add_argument("--model", type=Path, default=resource(*MODEL), help="file to write or measure")
    arguments = parser.parse_args()
    words = dictionary_words()
    if not arguments.evaluate:
        learnt = [(word, phones) for word, listed in words.items() if not held_out(word) for phones in listed]
        train(learnt, arguments.model)
    result = evaluate(
        LetterToSound.load(arguments.model).pronounce,
        {word: listed for word, listed in words.items() if held_out(word)},
    )
    print(f"{result.words} held-out words: phone error rate {result.phone_error_rate:.4f}, ", end="")
    print(f"word accuracy {result.word_accuracy:.4f}")


if __name__ == "__main__":
    main()
