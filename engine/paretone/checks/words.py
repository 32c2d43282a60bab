"""Words that a take leaves out, says twice or adds, by pocketsphinx.

The recogniser walks through the text's words in their order. At every word it may leave it out, or all up to any
other, and before every word it may hear any phones of a free loop; all have a price. So a word is reported as missing
only if other sounds, or none, fit so much better than its own phones. English only; other languages and a missing extra
are *unavailable*.

pocketsphinx holds the interpreter's lock while it listens. Off the main thread it therefore runs in a process of its
own, whose programme is this file.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from paretone.checks.signal import Found
    from paretone.checks.speech import Speech
    from paretone.setting.take import Take

RATE = 16000
FRAMES_PER_SECOND = 100
PADDING = 0.2
"""Seconds of silence added at both ends."""
LEVEL, NOISE = 0.08, 1e-4
PHONES = (
    *"AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split(),
)
SKIP, SKIP_MORE, LOST, AGAIN, PHONE, DEARER, SILENCE = 1e-13, 1e-3, 1e-24, 1e-6, 1e-3, 1e-6, 0.05
"""Probabilities of leaving a word out, each further one, and any number, of going back to the words before, of a phone
of the free loop (the second where going back is looked for alone), and of silence between words."""
AHEAD, BACK = 4, 4
"""Most words that are left out for a price each, and that are heard again."""
BEAMS = {"beam": 1e-40, "pbeam": 1e-40, "wbeam": 1e-30}
"""Wide enough for four words that are left out, narrow enough for 0.1 s per second of speech."""
LONGEST_SECONDS = 60.0
"""Longer takes are not listened to: the time grows faster than their words."""
LEAST_OTHERS = 3
"""Phones that are not of the text: fewer fit anywhere."""
FRAME_BYTES = 2 * RATE // FRAMES_PER_SECOND


@dataclass(frozen=True)
class Heard:
    """One word of the text, a run of other phones, or silence, as it was heard."""

    word: int
    """Index in the text; -1 for phones that are not of the text."""
    start: float
    end: float
    """Seconds."""
    phones: tuple[str, ...] = ()
    """Phones of the free loop."""


@dataclass(frozen=True)
class Listened:
    words: tuple[str, ...]
    spelled: tuple[tuple[str, ...], ...]
    """Phones of each word."""
    heard: tuple[Heard, ...]
    again: tuple[Heard, ...] = ()
    """As heard in search of words said again; empty without any."""


def unavailable(speech: Speech) -> str:
    """Why the words of ``speech`` cannot be checked, as a sentence, or ``""``."""
    from paretone.extras import how_to_add
    from paretone.front_end.forced_alignment import installed
    from paretone.front_end.speakable import is_english

    if not speech.text.strip():
        return "Words were not checked: the text is not known."
    if not is_english(speech.text):
        return "Words were not checked: only English is listened for."
    if speech.seconds > LONGEST_SECONDS:
        return f"Words were not checked: only takes of up to {LONGEST_SECONDS:.0f} s are listened to."
    if not installed():
        return f"Words were not checked: pocketsphinx is not installed; {how_to_add('judge')}."
    return ""


def missing(speech: Speech) -> Iterator[Found]:
    """Runs of words of the text that were not heard, between the neighbours that were."""
    from paretone.checks.speech import runs

    listened = listen(speech)
    said = {one.word for one in listened.heard}
    for first, end in runs(np.array([place not in said for place in range(len(listened.words))], bool)):
        start = max((one.end for one in listened.heard if 0 <= one.word < first), default=0.0)
        stop = min((one.start for one in listened.heard if one.word >= end), default=speech.seconds)
        quoted = " ".join(listened.words[first : min(end, first + 6)]) + (" …" if end > first + 6 else "")
        # Words in whose place as much else was heard were rather misheard, if they are few.
        others = sum(len(one.phones) for one in listened.heard if one.word < 0 and start <= one.start < stop)
        phones = sum(map(len, listened.spelled[first:end]))
        sure = _sure(phones, 12 if 2 * others >= phones else 6)
        yield start, max(start, stop), sure, f"“{quoted}” {'is' if end == first + 1 else 'are'} missing."


def repeated(speech: Speech) -> Iterator[Found]:
    """Words that were heard out of the text's order, and more of them than of other phones next to them."""
    listened = listen(speech)
    for group, _ in _besides(listened.again or listened.heard, listened.spelled):
        run, others = [one for one in group if one.word >= 0], sum(len(one.phones) for one in group)
        phones = sum(len(listened.spelled[one.word]) for one in run)
        if run and (others < LEAST_OTHERS or others < phones):
            said = " ".join(listened.words[one.word] for one in run)
            yield run[0].start, run[-1].end, _sure(phones, 3), f"“{said}” is said again."


def added(speech: Speech) -> Iterator[Found]:
    """Phones that are not of the text, and words out of its order next to them, which were heard in place of others."""
    listened = listen(speech)
    for group, left_out in _besides(listened.heard, listened.spelled):
        start, end, phones = group[0].start, group[-1].end, sum(len(one.phones) for one in group)
        if phones >= LEAST_OTHERS:
            phones += sum(len(listened.spelled[one.word]) for one in group if one.word >= 0)
        # Words that are left out there may be among them, misheard.
        phones -= sum(len(listened.spelled[word]) for word in left_out)
        yield start, end, _sure(phones, 4), f"{end - start:.1f} s of speech are not in the text."


def _besides(heard: Sequence[Heard], spelled: Sequence[Sequence[str]]) -> Iterator[tuple[list[Heard], set[int]]]:
    """Groups of extra speech, each with the text's words that are missing there. The heard words that follow the text's
    order and have the most phones are the text's; all else is extra. Extra speech on both sides of one word of up to
    three phones is one group, since other sounds are often taken for short words."""
    ways = [(0, list[int]())]
    for place, one in enumerate(heard):
        if one.word >= 0:
            before = (way for way in ways if not way[1] or heard[way[1][-1]].word < one.word)
            phones, way = max(before, key=itemgetter(0))
            ways.append((phones + len(spelled[one.word]), [*way, place]))
    ordered, groups = max(ways, key=itemgetter(0))[1], list[list[int]]()
    for place in sorted({*range(len(heard))} - {*ordered}):
        words = heard[groups[-1][-1] + 1 : place] if groups else ()
        if groups and len(words) < 2 and all(len(spelled[one.word]) <= 3 for one in words):
            groups[-1].append(place)
        else:
            groups.append([place])
    for group in groups:
        first = max((heard[place].word for place in ordered if place < group[0]), default=-1)
        last = min((heard[place].word for place in ordered if place > group[-1]), default=len(spelled))
        left_out = {*range(first + 1, last)} - {heard[place].word for place in ordered}
        yield [heard[place] for place in group], left_out


def _sure(phones: int, least: int) -> float:
    return 0.0 if phones < least else 1 - 0.5 ** (phones - least + 1.01)


SaidWord = tuple[str, tuple[tuple[str, float, float], ...]]
"""A word with its phones in time."""


def said_words(take: Take) -> tuple[SaidWord, ...]:
    """Words of a take in time: as its model was told to time them, or else as pocketsphinx finds them; none if neither
    is there."""
    from paretone.checks.speech import Speech, spoken_words
    from paretone.front_end.alignment import forced_words
    from paretone.front_end.phones import words
    from paretone.front_end.speakable import is_english

    named = spoken_words(take.text) if is_english(take.text) else ()
    if take.trace.phones:
        groups = [tuple(take.trace.phones[place] for place in one) for one in words(take.trace.phones)]
        phones = ("".join(name for name, _, _ in one) for one in groups)
        return tuple(zip((name for name, _ in named) if len(named) == len(groups) else phones, groups, strict=True))
    if unavailable(Speech(take.samples, take.sample_rate, take.text)):
        return ()
    found = forced_words(take.samples, take.sample_rate, [phones for _, phones in named])
    return tuple((name, one.phones) for (name, _), one in zip(named, found, strict=False))


# --- Listening --------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def listen(speech: Speech) -> Listened:
    """What is heard of the text of ``speech``; kept, because three checks in turn need it."""
    from paretone.audio.resampling import resample
    from paretone.checks.speech import spoken_words
    from paretone.own_process import heard_apart

    words = spoken_words(speech.text)
    samples = resample(speech.sound, speech.rate, RATE).astype(np.float64)
    size = float(np.sqrt(np.mean(samples**2))) if len(samples) else 0.0
    if not words or size < 1e-5:
        return Listened((), (), ())
    silence = np.zeros(round(PADDING * RATE))
    samples = np.concatenate([silence, samples * (LEVEL / size), silence])
    samples += NOISE * np.random.default_rng(0).standard_normal(len(samples))
    raw = (samples.clip(-1, 1) * 32767).astype(np.int16).tobytes()
    spelled = [phones for _, phones in words]
    heard, again = map(_joined, heard_apart(__name__, raw, spelled, decoded))
    return Listened(tuple(name for name, _ in words), tuple(tuple(one.split()) for one in spelled), heard, again)


def _joined(segments: Sequence[Segment]) -> tuple[Heard, ...]:
    """Segments as words of the text and runs of other phones."""
    found: list[Heard] = []
    for name, first, last in segments:
        start, end = first / FRAMES_PER_SECOND - PADDING, (last + 1) / FRAMES_PER_SECOND - PADDING
        if name.isdecimal():
            found.append(Heard(int(name), max(0.0, start), end))
        elif name in PHONES:
            if found and found[-1].word < 0 and start - found[-1].end < 0.15:
                found[-1] = Heard(-1, found[-1].start, end, (*found[-1].phones, name))
            else:
                found.append(Heard(-1, max(0.0, start), end, (name,)))
    return tuple(found)


@lru_cache(maxsize=1)
def _decoder() -> tuple[Any, set[str]]:
    """The decoder, which takes a tenth of a second to load, and the words added to its dictionary."""
    import pocketsphinx

    decoder = pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", lm=None, bestpath=False, **BEAMS)
    for phone in PHONES:
        decoder.add_word(f"={phone}", phone, phone == PHONES[-1])
    return decoder, set()


Segment = tuple[str, int, int]
"""Index of a word of the text, or a phone; first and last frame."""


def _walked(raw: bytes, spelled: Sequence[str], phone_price: float) -> list[Segment]:
    import pocketsphinx

    decoder, known = _decoder()
    if len(known) > 3000:
        _decoder.cache_clear()  # Its dictionary is nearly full.
        decoder, known = _decoder()
    logarithms, count = decoder.get_logmath(), len(spelled)
    graph = pocketsphinx.FsgModel("text", logarithms, 1.0, count + 2)
    meant = {f"={phone}": phone for phone in PHONES}
    times: Counter[str] = Counter()
    for place, phones in enumerate(spelled):
        # Equal words of a text have names of their own, because their places must be told apart.
        name = f"{phones.replace(' ', '_')}={times[phones]}"
        times[phones] += 1
        meant[name] = str(place)
        if name not in known:
            decoder.add_word(name, phones, True)
            known.add(name)
        graph.trans_add(place, place + 1, 0, graph.word_add(name))
        for ahead in range(1, min(AHEAD, count - place) + 1):
            graph.null_trans_add(place, place + ahead, logarithms.log(SKIP * SKIP_MORE ** (ahead - 1)))
        for back in range(1, min(BACK, place + 1) + 1):
            graph.null_trans_add(place + 1, place + 1 - back, logarithms.log(AGAIN))
    for phone in PHONES:
        number = graph.word_add(f"={phone}")
        for place in range(count + 2):
            graph.trans_add(place, place, logarithms.log(phone_price), number)
    # The last place is between any two others: a take may end early, or lack a passage.
    for place in range(count + 1):
        graph.null_trans_add(place, count + 1, logarithms.log(LOST))
        graph.null_trans_add(count + 1, place, 0)
    graph.set_start_state(0)
    graph.set_final_state(count)
    graph.add_silence("<sil>", -1, SILENCE)
    decoder.add_fsg("text", graph)
    decoder.activate_search("text")
    decoder.reinit_feat()
    decoder.start_utt()
    decoder.process_raw(raw, full_utt=True)
    decoder.end_utt()
    return [(meant.get(one.word, ""), one.start_frame, one.end_frame) for one in decoder.seg() or ()]


def decoded(
    raw: bytes, spelled: Sequence[str], walk: Callable[[bytes, Sequence[str], float], list[Segment]] = _walked
) -> tuple[list[Segment], list[Segment]]:
    """Segments of 16-bit samples at :data:`RATE`, and those in search of words said again; empty without any. ``walk``
    aligns, given the probability of other phones."""
    found = walk(raw, spelled, PHONE)
    words = [place for place, (name, _, _) in enumerate(found) if name.isdecimal()]
    unclear = [
        number
        for number, (before, after) in enumerate(pairwise([-1, *words, len(found)]))
        if sum(bool(name) for name, _, _ in found[before + 1 : after]) >= 3
    ]
    if not unclear:
        return found, []
    # Slurred words fit other phones better than their own. The part around them is aligned a second time, with other
    # phones less likely, to tell whether words, of five phones in a row, are repeated.
    first, end = unclear[0] - BACK - 1, unclear[-1] + BACK + 1
    first, last = words[first] if first > 0 else 0, words[end] if end < len(words) else len(found)
    inside = [int(found[place][0]) for place in words if first <= place < last]
    start, frame = (min(inside), found[first][1]) if first else (0, 0)
    stop, until = (max(inside) + 1, found[last][1]) if last < len(found) else (len(spelled), len(raw))
    heard = walk(raw[frame * FRAME_BYTES : until * FRAME_BYTES], spelled[start:stop], DEARER)
    moved = [(str(int(one) + start) if one.isdecimal() else one, frame + a, frame + b) for one, a, b in heard]
    again = [*found[:first], *moved, *found[last:]]
    latest, run, longest = -1, 0, 0
    for place in (int(name) if name.isdecimal() else -1 for name, _, _ in again if name):
        run = run + len(spelled[place].split()) if 0 <= place <= latest else 0
        latest, longest = max(latest, place), max(longest, run)
    return found, again if longest >= 5 else []


if __name__ == "__main__":
    given = json.loads(sys.stdin.buffer.readline())
    json.dump(decoded(sys.stdin.buffer.read(), given), sys.stdout)
