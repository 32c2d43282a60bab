import sys

import numpy as np
import pytest
import soundfile

from paretone.errors import Cancelled, PlainError, TextError
from paretone.measure import intelligibility
from paretone.measure.intelligibility import JUDGE_RATE, Judge, WordErrors, bigram_model, pieces, words_of
from paretone.models.catalogue import voice, voices
from paretone.observer import stoppable
from paretone.paths import resource
from paretone.training.natural_teacher import original_speech
from tests.engine.recorder import Follower
from tests.packages import needs
from tests.workload import workload

SENTENCES = resource("sentences", "harvard.txt").read_text(encoding="utf-8").splitlines()[: workload(6, 2)]


def original(sentence: str) -> tuple[np.ndarray, int]:
    """As the speaker of the shipped voices says it."""
    return original_speech(sentence, voice()), 24_000


@pytest.fixture(scope="module")
def judge() -> Judge:
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("jiwer")
    return Judge(SENTENCES)


@needs("hibari")
def test_clear_speech_is_understood_and_noise_is_not(judge: Judge) -> None:
    spoken = [original(sentence) for sentence in SENTENCES]
    random = np.random.default_rng(0)
    noisy = [(samples * 0.02 + 0.1 * random.standard_normal(len(samples)), rate) for samples, rate in spoken]
    clear = judge.word_errors(SENTENCES, spoken)
    assert clear.rate < 0.05
    assert sum(clear.words) == sum(len(words_of(sentence)) for sentence in SENTENCES)
    assert judge.word_errors(SENTENCES, noisy).rate > 0.5
    assert judge.word_errors(SENTENCES[::-1], spoken).rate > 0.7


@needs("hibari")
def test_words_that_the_judge_has_never_heard_of_are_taught() -> None:
    pytest.importorskip("pocketsphinx")
    sentence = "The blorfing vocoder hears nothing."
    result = Judge([sentence]).word_errors([sentence], [original(sentence)])
    assert (result.edits, result.words) == ((0,), (5,))


def test_what_was_heard_before_does_not_matter() -> None:
    speakers = voices("f5-mini")[:2]
    texts = [one.transcript for one in speakers]
    noise = np.random.default_rng(0)
    heard = []
    for one in speakers:
        samples, rate = soundfile.read(one.audio, dtype="float32")
        heard.append((samples + 0.05 * noise.standard_normal(len(samples)).astype(np.float32), rate))
    judge = Judge(texts)
    assert [judge.hear(*one) for one in heard] == [Judge(texts).hear(*one) for one in heard]


@pytest.mark.parametrize("samples", [np.zeros(0), np.full(1000, np.nan)])
def test_a_take_that_failed_says_none_of_its_words(judge: Judge, samples: np.ndarray) -> None:
    errors = judge.word_errors(["The birch canoe slid."], [(samples, 24000)])
    assert errors.edits == errors.words == (4,)


def test_long_recordings_are_heard_in_pieces_between_which_judging_can_be_cancelled(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(1).standard_normal(100 * JUDGE_RATE).astype(np.float32)
    quiet = slice(55 * JUDGE_RATE, 56 * JUDGE_RATE)
    noise[quiet] = 0.0
    found = pieces(noise)
    assert np.array_equal(np.concatenate(found), noise) and quiet.start < len(found[0]) < quiet.stop
    assert len(pieces(noise[: 60 * JUDGE_RATE])) == 1, "as it is"
    monkeypatch.setattr(intelligibility, "LONGEST_SECONDS", 0.5)
    monkeypatch.setattr(intelligibility, "CUT_SECONDS", 0.2)
    with pytest.raises(Cancelled), stoppable(Follower(cancel_at=2).check):
        judge.hear(np.zeros(2 * JUDGE_RATE, np.float32), JUDGE_RATE)


def test_sentences_and_recordings_must_match(judge: Judge) -> None:
    with pytest.raises(TextError, match="2 sentences with words are needed for 1 recordings"):
        judge.word_errors(SENTENCES[:2], [(np.zeros(10), 16000)])
    with pytest.raises(TextError, match="no test sentences"):
        Judge(["..."])


def test_rate_and_interval() -> None:
    errors = WordErrors((1, 0, 2, 0), (10, 5, 5, 20), ("", "", "", ""))
    assert errors.rate == 3 / 40
    low, high = errors.interval()
    assert 0.0 <= low < errors.rate < high < 0.4
    assert errors.interval() == (low, high)
    assert WordErrors((0, 0), (4, 4), ("", "")).interval() == (0.0, 0.0)


def test_the_bigram_sums_to_one_after_every_word() -> None:
    lines = bigram_model([["a", "b", "c"], ["a", "c"], ["b", "c", "a"]]).splitlines()
    first, second = lines.index("\\1-grams:"), lines.index("\\2-grams:")
    unigrams = {word: (10 ** float(p), 10 ** float(b)) for p, word, b in map(str.split, lines[first + 1 : second - 1])}
    bigrams = {(h, w): 10 ** float(p) for p, h, w in map(str.split, lines[second + 1 : -2])}
    vocabulary = [word for word in unigrams if word != "<s>"]
    assert sum(unigrams[word][0] for word in vocabulary) == pytest.approx(1.0, abs=1e-4)
    for history in ("<s>", "a", "b"):
        back_off = unigrams[history][1]
        total = sum(bigrams.get((history, word), back_off * unigrams[word][0]) for word in vocabulary)
        assert total == pytest.approx(1.0, abs=1e-3)


def test_words_are_letters_and_apostrophes() -> None:
    assert words_of("It's the Man's 3 hats!") == ["it's", "the", "man's", "hats"]


@pytest.mark.parametrize("package", ["pocketsphinx", "jiwer"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PlainError, match=rf"needs {package}.*pip install 'paretone\[judge\]'"):
        Judge(SENTENCES)
