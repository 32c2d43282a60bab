from __future__ import annotations

import numpy as np
import pytest

from paretone.audio.cross_fade import DECAY, RELEASE, CrossFader, PassageJoiner, faded_after


def official_join(pieces: list[np.ndarray], fade: int) -> np.ndarray:
    """All pieces at once: the definition that the streaming form must equal."""
    joined = pieces[0].astype(np.float64)
    for piece in pieces[1:]:
        overlap = min(fade, len(joined), len(piece))
        out, into = np.linspace(1, 0, overlap), np.linspace(0, 1, overlap)
        mixed = joined[len(joined) - overlap :] * out + piece[:overlap] * into
        joined = np.concatenate([joined[: len(joined) - overlap], mixed, piece[overlap:]])
    return joined.astype(np.float32)


@pytest.mark.parametrize("fade", [0, 1, 30, 100])
@pytest.mark.parametrize("lengths", [[50], [50, 60, 70], [200, 10, 5, 300], [0, 40, 0, 40], [3, 2, 1, 2, 3]])
def test_streamed_cross_fade_equals_the_whole(fade: int, lengths: list[int]) -> None:
    random = np.random.default_rng(1)
    pieces = [random.standard_normal(length).astype(np.float32) for length in lengths]
    fader = CrossFader(fade)
    streamed = [fader.push(piece) for piece in pieces]
    assert np.array_equal(np.concatenate([*streamed, fader.finish()]), official_join(pieces, fade))
    assert len(fader.finish()) == 0


@pytest.mark.parametrize("fade", [0, 1, 30, 100])
@pytest.mark.parametrize("lengths", [[50], [50, 60, 70], [200, 10, 5, 300], [0, 40, 0, 40], [3, 2, 1, 2, 3]])
@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("known", [False, True])
def test_passages_in_pieces_are_joined_like_whole_ones(fade: int, lengths: list[int], piece: int, known: bool) -> None:
    random = np.random.default_rng(1)
    passages = [random.standard_normal(length).astype(np.float32) for length in lengths]
    joiner, streamed, starts = PassageJoiner(CrossFader(fade), len(lengths) if known else None), [], []
    for passage in passages:
        starts.append(joiner.begin())
        streamed += [joiner.push(passage[start : start + piece]) for start in range(0, len(passage), piece)]
    joined = np.concatenate([*streamed, joiner.finish()])
    expected = official_join(passages, fade)
    assert np.array_equal(joined, expected)
    # Passages without anything in them have no place of their own.
    for number, start in enumerate(starts):
        if lengths[number]:
            assert start == len(official_join([*passages[:number], passages[number][:0]], fade)) - min(
                fade, len(official_join(passages[:number], fade)) if number else 0
            )


def test_a_passage_is_heard_before_it_ends() -> None:
    joiner = PassageJoiner(CrossFader(30))
    joiner.begin()
    assert len(joiner.push(np.ones(100, np.float32))) == 70
    assert len(joiner.push(np.ones(5, np.float32))) == 5
    joiner.begin()
    assert len(joiner.push(np.ones(20, np.float32))) == 0
    assert len(joiner.push(np.ones(20, np.float32))) == 10


@pytest.mark.parametrize("size", [1, 700, 10_000])
def test_a_passage_is_silent_after_its_end_however_it_comes(size: int) -> None:
    passages = [np.ones(length, np.float32) for length in (5_000, 4_000)]
    ends = [1_000, 3_900]
    joiner, streamed = PassageJoiner(CrossFader(0), ends=ends), []
    for passage in passages:
        joiner.begin()
        streamed += [joiner.push(passage[first : first + size]) for first in range(0, len(passage), size)]
    heard = np.concatenate([*streamed, joiner.finish()])
    assert heard.dtype == np.float32
    assert np.array_equal(heard, np.concatenate([faded_after(*one) for one in zip(passages, ends, strict=True)]))
    first = heard[:5_000]
    assert (first[: 1_000 + RELEASE] == 1).all() and (np.diff(first) <= 0).all()
    assert not first[1_000 + RELEASE + DECAY :].any()
    assert (heard[5_000:] == 1).all(), "the end of the second has not faded yet"
