"""Natural speech as an F5 that reads its phones learns from it, made by the teacher where there is none yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paretone.front_end.phones import PhoneVocabulary, labels
from paretone.training.features import Example, Examples
from paretone.training.natural_corpus import CorpusOptions, NaturalClip, known_options, make_corpus
from paretone.training.natural_teacher import NaturalTeacher


def natural_examples(
    folder: Path, vocabulary: PhoneVocabulary, options: CorpusOptions, progress: Callable[[int, int], None]
) -> Examples:
    """The clips of the corpus in ``folder``, or of one with ``options``, of which what is missing is spoken first.

    ``progress`` is called with finished and total utterances and may raise to cancel. Raises
    :class:`paretone.errors.PlainError`.
    """
    corpus = make_corpus(folder, known_options(folder) or options, NaturalTeacher, progress)

    def example(clip: NaturalClip) -> Example:
        return Example(clip.voice, labels(clip.phones, clip.frames, vocabulary), clip.mel)

    return Examples(tuple(map(example, corpus.training)), tuple(map(example, corpus.held_out)))
