from __future__ import annotations

from pathlib import Path

from paretone.front_end.letter_to_sound import LetterToSound, default_letter_to_sound
from paretone.training.recipes.letter_to_sound import dictionary_words, edit_distance, evaluate, held_out, train


def test_the_letter_to_sound_model_on_words_it_never_saw() -> None:
    words = {word: listed for word, listed in dictionary_words().items() if held_out(word)}
    sample = dict(list(words.items())[::8])
    result = evaluate(default_letter_to_sound().pronounce, sample)
    assert result.words > 700
    assert result.phone_error_rate < 0.09
    assert result.word_accuracy > 0.65


def test_training_learns_spelling_from_a_few_words_and_twice_the_same(tmp_path: Path) -> None:
    words = [(first + vowel + last, (first, sound, last)) for first in "bdptm" for last in "bdptn"
             for vowel, sound in (("a", "ae"), ("e", "eh"), ("i", "ih"))]  # fmt: skip
    learnt = [pair for number, pair in enumerate(words * 2) if number % 7]
    train(learnt, tmp_path / "first.npz")
    train(learnt, tmp_path / "second.npz")
    model, again = (LetterToSound.load(tmp_path / name) for name in ("first.npz", "second.npz"))
    assert all(model.pronounce(word) == phones for word, phones in words)
    assert again.log_probability(1, 2) == model.log_probability(1, 2)


def test_edit_distance() -> None:
    assert edit_distance(("k", "ae", "t"), ("k", "ae", "t")) == 0
    assert edit_distance(("k", "ae", "t"), ("b", "ae", "t", "s")) == 2
    assert edit_distance((), ("a", "b")) == 2
