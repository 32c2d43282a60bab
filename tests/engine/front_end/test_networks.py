"""Files of the front end: the tagger, the network for unknown words, the network of lengths."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import CheckpointError
from paretone.front_end import lengths, tagger, unknown_words
from paretone.front_end.lengths import SymbolLengths, default_lengths
from paretone.front_end.lexicon import bundled
from paretone.front_end.phones import EDGE
from paretone.front_end.tagger import Tagger, default_tagger
from paretone.front_end.unknown_words import UnknownWords, default_unknown_words


def test_parts_of_speech_follow_from_the_sentence():
    said = default_tagger()("They record a new record , and I read it .".split())
    assert said == ["PRP", "VBP", "DT", "JJ", "NN", ",", "CC", "PRP", "VBP", "PRP", "."]


def test_unknown_words_are_read_by_their_letters():
    read = default_unknown_words()
    assert read("zorblax") == "zˈɔɹblæks"
    assert read("漢1") == ""
    assert read("a" * 100) == read("a" * 24)


def test_lengths_are_plausible_and_depend_on_the_place_in_the_sentence():
    units = default_lengths().units((EDGE, *"ɡˈO ɡˈO ɡˈO.", EDGE))
    assert units.shape == (14,) and units.dtype == np.float32
    assert 12 < units.sum() < 80
    assert units[11] > units[3]  # The last word is longer.


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Tagger, tagger.FILE), (UnknownWords, unknown_words.FILE), (SymbolLengths, lengths.FILE)],
)
def test_damaged_files_are_named(tmp_path: Path, kind: type[Tagger], name: str) -> None:
    path = tmp_path / name
    shutil.copy(bundled(name), path)
    kind.load(path)
    path.write_bytes(path.read_bytes()[:1000])
    for _ in range(2):
        with pytest.raises(CheckpointError, match="install Paretone again"):
            kind.load(path)
        path.unlink(missing_ok=True)
