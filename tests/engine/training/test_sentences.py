from __future__ import annotations

from paretone.paths import resource
from paretone.training.sentences import (
    LONGEST,
    SHARED_RUN,
    SHORTEST,
    _dictionary,
    normalised_words,
    training_sentences,
)


def _runs(sentence: str) -> set[tuple[str, ...]]:
    words = normalised_words(sentence)
    return {words[start : start + SHARED_RUN] for start in range(len(words) - SHARED_RUN + 1)}


def test_the_same_seed_gives_the_same_sentences_and_another_seed_others():
    first = training_sentences(300, seed=4)
    assert first == training_sentences(300, seed=4)
    assert not set(first) & set(training_sentences(300, seed=5))


def test_more_sentences_begin_with_the_fewer():
    assert training_sentences(200)[:50] == training_sentences(50)


def test_sentences_are_different_and_of_fitting_length():
    sentences = training_sentences(2_000)
    assert len(set(sentences)) == 2_000
    assert all(SHORTEST <= len(one) <= LONGEST for one in sentences)
    assert all(one[0].isupper() and one[-1] in ".?" for one in sentences)
    assert not any("<" in one or "_" in one or "  " in one for one in sentences)


def test_sentences_of_the_test_set_never_occur_not_even_a_run_of_their_words():
    harvard = resource("sentences", "harvard.txt").read_text(encoding="utf-8").splitlines()
    forbidden = set().union(*map(_runs, harvard))
    assert forbidden
    assert all(forbidden.isdisjoint(_runs(one)) for one in training_sentences(7_000, excluded=harvard))


def test_what_is_excluded_would_have_been_drawn():
    drawn = training_sentences(400)
    unwanted = [one for one in drawn if len(normalised_words(one)) >= SHARED_RUN][:20]
    assert not set(unwanted) & set(training_sentences(400, excluded=unwanted))


def test_a_third_is_word_salad_with_words_that_the_grammar_does_not_know():
    grammar = {word for one in training_sentences(3_000) for word in normalised_words(one)}
    assert len(grammar) > 3_000
    assert len(grammar & set(_dictionary())) > 2_500


def test_an_stands_before_vowels():
    text = " ".join(training_sentences(3_000)).lower()
    assert " an apple" in text or " an orange" in text or " an old" in text
    assert " a apple" not in text
    assert " a orange" not in text
