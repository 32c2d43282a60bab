import re

from paretone.models.catalogue import harvard_sentences, judged_sentences, unseen_sentences
from paretone.training import sentences as module
from paretone.training.sentences import corpus_sentences, everyday_sentences, runs, written_sentences


def test_the_same_seed_gives_the_same_sentences_and_another_seed_others():
    assert corpus_sentences(400, seed=4) == corpus_sentences(400, seed=4)
    both = set(corpus_sentences(400, seed=4)) & set(corpus_sentences(400, seed=5))
    assert len(both - set(written_sentences())) < 20  # Some forms have nothing to fill in.


def test_everyday_sentences_are_different_whole_and_of_something_of_everything():
    sentences = everyday_sentences(3_000)
    assert len(set(sentences)) == 3_000
    assert all(module.SHORTEST_EVERYDAY <= len(one) <= module.LONGEST_EVERYDAY for one in sentences)
    assert all(one[0] in '"' or one[0].isupper() for one in sentences)
    assert all(re.search(r'[.?!]"?$', one) for one in sentences)
    assert not any(re.search(r"[<>_]|  |\ba [aeiou]", one) for one in sentences)
    text = "\n".join(everyday_sentences(3_000))
    for what in (r"\$\d", r"\d:\d\d", r"\?", r"!", r";", r": ", r'"', r"%", r"Dr\.", r" - ", r"\d(st|nd|rd|th)\b"):
        assert len(re.findall(what, text)) > 10, what
    written = written_sentences()
    assert len(set(written)) == len(written) >= 180
    assert all(len(one) <= module.LONGEST_EVERYDAY and one == one.strip() for one in written)


def test_a_corpus_has_all_kinds_and_no_run_of_words_of_a_test_sentence():
    sentences = corpus_sentences(2_000, excluded=harvard_sentences())
    assert len(set(sentences)) == 2_000
    assert set(written_sentences()) <= set(sentences)
    forbidden = {run for one in harvard_sentences() for run in runs(one)}
    assert all(forbidden.isdisjoint(runs(one)) for one in sentences)
    everyday = set(everyday_sentences(2_000))
    share = sum(one in everyday for one in sentences) / 2_000
    assert abs(share - (1 - module.TEMPLATE_SHARE - len(written_sentences()) / 2_000)) < 0.02
    assert len(corpus_sentences(5)) == 5


def test_sentences_that_models_are_judged_by_are_everyday_text_of_ordinary_length_and_in_no_corpus():
    unseen = unseen_sentences()
    assert len(set(unseen)) == len(set(harvard_sentences())) == 30
    assert all(9 <= len(one.split()) <= 17 for one in unseen)
    forbidden = {run for one in unseen for run in runs(one)}
    assert forbidden.isdisjoint(run for one in written_sentences() for run in runs(one))
    sentences = corpus_sentences(4_000, excluded=judged_sentences())
    assert forbidden.isdisjoint(run for one in sentences for run in runs(one))
    # No form of the grammar comes near them: leaving them out changes no corpus.
    assert sentences == corpus_sentences(4_000, excluded=harvard_sentences())
