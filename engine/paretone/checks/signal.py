"""Checks of the signal, alone and against the prompt: each gives the places of the fault of its name. Torch-free.
Thresholds were set while looking at the first 22 clean takes of each bundled model, in the shipped voices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from paretone.checks.speech import FLOOR, FRAME_SECONDS, LEVEL_SECONDS, VOWELS, Speech, runs, syllables
from paretone.measure.loudness import FULL_SCALE
from paretone.wording import counted

Found = tuple[float, float, float, str]
"""Start and end in seconds, sureness from 0 to 1, and a sentence."""


def sureness(value: float, threshold: float, spread: float) -> float:
    """0.5 at ``threshold``, 0.88 one ``spread`` above it."""
    return float(1 / (1 + np.exp(np.clip(-2 * (value - threshold) / spread, -50, 50))))


# --- Samples ----------------------------------------------------------------------------------------------------------
def not_a_number(speech: Speech) -> Iterator[Found]:
    for start, end in runs(~np.isfinite(speech.samples))[:20]:
        yield start / speech.rate, end / speech.rate, 1.0, f"{end - start} samples are not numbers."


def clipped(speech: Speech) -> Iterator[Found]:
    """Flat peaks, of three samples or more, at the highest level of the take; or samples 6 dB above full scale: lower
    ones are usual, and turned down for playback and 16-bit files."""
    size = np.abs(speech.raw)
    highest = float(size.max(initial=0.0))
    if highest < 0.05:
        return
    at_top = size >= min(highest * 0.999, max(FULL_SCALE, highest * 0.98))
    flat = [one for one in runs(at_top) if one[1] - one[0] >= 3]
    if flat:
        sure = sureness(np.log2(len(flat) / max(0.1, speech.seconds)), np.log2(0.55), 1.0)
        many = counted(len(flat), "peak is", "peaks are")
        yield flat[0][0] / speech.rate, flat[-1][1] / speech.rate, sure, f"{many} cut off."
    else:
        place, over = int(size.argmax()) / speech.rate, 20 * float(np.log10(highest))
        yield place, place, sureness(over, 6.0, 1.0), f"{over:.1f} dB above full scale, which clips in 16-bit files."


def offset(speech: Speech) -> Iterator[Found]:
    """A mean of 8 % of the speech's level or more."""
    mean, size = float(speech.raw.mean()) if len(speech.raw) else 0.0, 10 ** (speech.loud / 20)
    if abs(mean) > 5e-4:
        sure = sureness(abs(mean) / size, 0.08, 0.02)
        yield 0.0, speech.seconds, sure, f"The mean of the samples is {mean:.4f}, not 0."


# --- Levels -----------------------------------------------------------------------------------------------------------
def silence(speech: Speech) -> Iterator[Found]:
    """Silence that is longer than pauses are, within speech, and before and after it."""
    if len(speech.levels) and (not speech.speaking.any() or speech.loud < -65):
        yield 0.0, speech.seconds, 1.0, "There is no sound."
        return
    for start, end in speech.pauses(0.3):
        seconds = (end - start) * LEVEL_SECONDS
        limit = 0.78 if start == 0 or end == len(speech.levels) else 0.75
        yield start * LEVEL_SECONDS, end * LEVEL_SECONDS, sureness(seconds, limit, 0.12), f"Silent for {seconds:.1f} s."


def level_jump(speech: Speech) -> Iterator[Found]:
    """The largest change between the loud parts in the 1.1 s before and after a place, if over 3 s it is of 8.5 dB."""
    levels, step, width, lasting = speech.levels, 10, 110, 300
    if len(levels) < 2 * width:
        return
    windows = sliding_window_view(levels, width)[::step]
    apart, rank = width // step, width * 97 // 100
    loud = np.partition(windows, rank, axis=1)[:, rank]
    change = loud[apart:] - loud[:-apart]
    # Silence before and after speech is no jump: both sides need speech.
    quiet = max(speech.loud - 45, -70)
    spoken = (windows > quiet).mean(1)
    change[(spoken[apart:] < 0.5) | (spoken[:-apart] < 0.5)] = 0.0
    place = int(np.abs(change).argmax()) * step + width
    # One loud vowel moves the windows, but not what lasts.
    sides = (levels[max(0, place - lasting) : place], levels[place : place + lasting])
    before, after = (float(np.percentile(one[one > quiet], 90)) if (one > quiet).any() else 0.0 for one in sides)
    at, size = place * LEVEL_SECONDS, (after - before) * bool(change.any())
    said = f"From here on it is {abs(size):.0f} dB {'louder' if size > 0 else 'quieter'}."
    yield at - 0.1, at + 0.1, sureness(abs(size), 8.5, 0.6), said


# --- Seams ------------------------------------------------------------------------------------------------------------
SEAM_SECONDS = 0.04
CLICK_BLOCK = 0.003
"""Seconds of a block: glottal pulses return within the six blocks on either side."""
NARROW, CLOSE = 4, 36
"""Samples around a click that belong to it, and up to which those after it must be smaller: bursts of plosives last."""
MOST = 8
"""Findings of one kind that are listed."""


def click(speech: Speech) -> Iterator[Found]:
    """Jumps between neighbouring samples, 10 dB above all others nearby; 6 dB at a seam."""
    bend = np.abs(np.diff(speech.sound, 3))
    width = max(4, round(CLICK_BLOCK * speech.rate))
    count = len(bend) // width
    if count < 24:
        return
    peaks = bend[: count * width].reshape(count, width).max(1)
    near = sliding_window_view(np.pad(peaks, 7, mode="edge"), 6).max(1)
    around = np.maximum(near[:count], near[9 : 9 + count])
    quiet = 10 ** ((speech.loud - 38) / 20)
    ratio = peaks / np.maximum(around, quiet)
    highest, latest = np.argsort(ratio)[-2 * MOST :], -1.0
    for block in np.sort(highest[ratio[highest] > 1.4]):
        place = block * width + int(bend[block * width : (block + 1) * width].argmax())
        neighbours = np.concatenate(
            [bend[max(0, place - CLOSE) : max(0, place - NARROW)], bend[place + NARROW : place + CLOSE]]
        )
        others = max(float(around[block]), float(neighbours.max(initial=0.0)), quiet)
        excess, at = 20 * np.log10(float(bend[place]) / others), (place + 1) / speech.rate
        seam = any(abs(at - one) < SEAM_SECONDS for one in speech.seams)
        said = f"A click, {excess:.0f} dB above the sound around it{', at a seam' if seam else ''}."
        sure = sureness(excess, 6.0 if seam else 10.0, 1.0)
        if at - latest > CLICK_BLOCK:  # Else it is one click at the border of two blocks.
            yield at - 0.005, at + 0.005, sure, said
        latest = at if sure > 0.5 else latest


def gap(speech: Speech) -> Iterator[Found]:
    """Zeros, or one repeated value, in the middle of sound: its louder side is at most 24 dB below the loud parts. A
    shorter gap cannot be told from a zero crossing, a longer one is a pause."""
    sound, rate, found = speech.sound, speech.rate, 0
    margin = max(2, round(0.005 * rate))
    for start, end in runs(np.abs(np.diff(sound)) <= 1e-6):
        seconds = (end - start) / rate
        if not 0.004 <= seconds <= 0.2 or start < margin or end > len(sound) - margin:
            continue
        before, after = sound[start - margin : start], sound[end + 1 : end + 1 + margin]
        level = max(10 * np.log10(float(np.mean(one**2)) + FLOOR) for one in (before, after))
        sure = sureness(level - speech.loud, -24.0, 4.0)
        seam = any(start / rate - SEAM_SECONDS < one < end / rate + SEAM_SECONDS for one in speech.seams)
        yield start / rate, end / rate, sure, f"No sound for {1000 * seconds:.0f} ms{', at a seam' if seam else ''}."
        found += sure > 0.5
        if found == MOST:
            return


# --- The end ----------------------------------------------------------------------------------------------------------
def cut(speech: Speech) -> Iterator[Found]:
    """Speech in the last 20 ms, at most 22 dB below the loud parts."""
    count = max(1, round(FRAME_SECONDS * speech.rate))
    if len(speech.sound) < 4 * count or speech.loud < -65:
        return
    level = 10 * np.log10(float(np.mean(speech.sound[-count:] ** 2)) + FLOOR) - speech.loud
    said = f"The last 20 ms are speech, {abs(level):.0f} dB below its loud parts."
    yield speech.seconds - FRAME_SECONDS, speech.seconds, sureness(level, -22.0, 3.0), said


NOISY = 0.3
"""Spectral flatness (geometric over arithmetic mean) of noise between 200 and 7000 Hz; speech is far below it."""
BURST_LEVEL = -32.0
QUIET_ENDS = VOWELS | set("mnŋlɹzsʃʒ")
"""Last sounds of texts that end without a noise as flat."""


def burst(speech: Speech) -> Iterator[Found]:
    """Noise in the last 1.5 s after the last sound of speech: of 0.05 s, of 0.13 s where the text may end in a stop
    with its release, and of 0.12 s more if it is a text's own f, v or th."""
    spectra, last = speech.spectra, speech.last_sound
    if len(spectra) < 20:
        return
    low, high = (round(hertz / speech.bin_hertz) for hertz in (200, min(7000, speech.rate / 2.4)))
    tail = spectra[-round(1.5 / FRAME_SECONDS) :, low:high] + FLOOR
    # Bins are averaged by fours: a single frame of noise has single deep bins.
    tail = tail[:, : tail.shape[1] // 4 * 4].reshape(len(tail), -1, 4).mean(2)
    flat = np.exp(np.log(tail).mean(1)) / tail.mean(1)
    level = 10 * np.log10(tail.mean(1)) - 10 * np.log10(float(np.percentile(spectra[:, low:high].mean(1), 90)) + FLOOR)
    for start, end in runs((flat > NOISY) & (level > BURST_LEVEL)):
        seconds = (end - start) * FRAME_SECONDS
        if end < len(tail) - 4 and (level[end:] > -25).any():
            continue  # Speech goes on after it.
        first = speech.seconds - (len(tail) - start) * FRAME_SECONDS
        own = last in set("fvθð") and start > 0 and level[start - 1] > BURST_LEVEL
        least = (0.05 if last in QUIET_ENDS else 0.13) + 0.12 * own
        sure = sureness(seconds, least, FRAME_SECONDS) * sureness(float(flat[start:end].max()), NOISY, 0.03)
        yield first, first + seconds, sure, f"Noise for {seconds:.2f} s at the end."


# --- Repetition -------------------------------------------------------------------------------------------------------
def loop(speech: Speech) -> Iterator[Found]:
    """A stretch of 0.4 s whose waveform below 1.5 kHz returns after 0.3 to 4 s with a correlation of 0.95; two sounds
    of one voice reach 0.9."""
    samples, rate = speech.narrow
    samples, rate = samples[: len(samples) // 2 * 2].reshape(-1, 2).mean(1, dtype=np.float64), rate / 2
    width, hop, first, last = (round(one * rate) for one in (0.4, 0.1, 0.3, 4.0))
    size, powers = 1 << (width + last).bit_length(), np.concatenate([[0.0], np.cumsum(samples**2)])
    floor = width * 10 ** (speech.loud / 10 - 2)
    best = (0.0, 0, 0)
    for start in range(0, len(samples) - width - first, hop):
        own = powers[start + width] - powers[start]
        if own < floor:
            continue  # Silence is like silence.
        later = samples[start : start + width + last]
        spectrum = np.fft.rfft(later, size) * np.conj(np.fft.rfft(later[:width], size))
        products = np.fft.irfft(spectrum, size)[first : len(later) - width + 1]
        ends = start + first + np.arange(len(products))
        others = powers[ends + width] - powers[ends]
        like = np.where(others < floor, 0.0, products / np.sqrt(np.maximum(own * others, 1e-12)))
        best = max(best, (float(like.max()), start, first + int(like.argmax())))
    (like, start, lag), at = best, (best[1] + best[2]) / rate
    said = f"What was said {lag / rate:.1f} s before comes again."
    yield at, at + max(0.4, lag / rate), sureness(like, 0.95, 0.02), said


# --- Spectrum ---------------------------------------------------------------------------------------------------------
HUM_FRAME = 1024
"""Samples at about 6 kHz: 0.17 s."""


def hum(speech: Speech) -> Iterator[Found]:
    """A tone that is there in speech and pauses alike, 18 dB above its neighbours; it is not heard 50 dB below the loud
    parts."""
    samples, rate = speech.narrow
    if len(samples) < 6 * HUM_FRAME:
        return
    frames = sliding_window_view(samples, HUM_FRAME)[:: HUM_FRAME // 2]
    spectra = np.abs(np.fft.rfft(frames * np.hanning(HUM_FRAME).astype(np.float32), axis=1)) / (HUM_FRAME / 4)
    steady = 20 * np.log10(np.quantile(spectra, 0.15, axis=0) + 1e-6)
    hertz = rate / HUM_FRAME
    low, high = max(6, int(40 / hertz)), int(1200 / hertz)
    part = steady[low - 6 : high + 6]
    excess = part[6:-6] - np.median(sliding_window_view(part, 13), axis=1)
    excess[part[6:-6] < speech.loud - 50.0] = 0.0
    place = int(excess.argmax())
    tone = (low + place) * hertz
    yield 0.0, speech.seconds, sureness(float(excess[place]), 18.0, 2.0), f"A steady tone of about {tone:.0f} Hz."


def bandwidth(speech: Speech) -> Iterator[Found]:
    """A band that ends below 84 % of half the sample rate: the spectrum falls by 18 dB within 1 kHz."""
    loud = speech.spectra[speech.speaking_frames]
    if len(loud) < 20:
        return
    # Loud frames of each bin: sibilants decide what is there above 6 kHz.
    level = 10 * np.log10(np.percentile(loud, 95, axis=0) + FLOOR)
    step = max(1, round(1000 / speech.bin_hertz))
    smooth = np.convolve(level, np.ones(5) / 5, "same")
    fall = smooth[: -step - 3] - smooth[step:-3]
    first, last = round(2500 / speech.bin_hertz), round(0.84 * speech.rate / 2 / speech.bin_hertz) - step
    if last <= first:
        return
    place = first + int(fall[first:last].argmax())
    edge = (place + step / 2) * speech.bin_hertz
    # Nothing may come back above the edge.
    above = float(smooth[place + step : -3].max(initial=-100.0)) - float(smooth[place])
    drop = min(float(fall[place]), -above)
    said = f"There is almost nothing above {edge / 1000:.1f} kHz, of {speech.rate / 2000:g} kHz possible."
    yield 0.0, speech.seconds, sureness(drop, 18.0, 2.0), said


# --- Against the prompt: pace, pitch, speaker -------------------------------------------------------------------------
def _faster(speech: Speech) -> float | None:
    """Octaves by which the pace is above the mean of the usual and the prompt's, which is one sentence and no more
    typical; ``None`` with fewer than three syllables."""
    if speech.pace is None or syllables(speech.text) < 3:
        return None
    own = speech.prompt.pace if speech.prompt is not None else None
    return float(np.log2(speech.pace / (own or 1.0) ** 0.5))


def pace(speech: Speech) -> Iterator[Found]:
    """A pace 1.8 times as high or as low as expected."""
    factor = _faster(speech)
    if factor is not None:
        said = f"The text would be spoken {2**factor:.2f} times as fast as expected."
        yield 0.0, speech.seconds, sureness(abs(factor), float(np.log2(1.8)), 0.1), said


OF_PITCH = 0.45
"""Share of pitch in a shift: the weights by which a shift of pitch and pace differs least from take to take."""


def shifted(speech: Speech) -> Iterator[Found]:
    """Pitch and pace together moved by 0.28 octaves against the prompt, as by a wrong sample rate; with pitch alone by
    less than 0.15 the text is only fast."""
    if speech.prompt is None or not speech.pitch or not speech.prompt.pitch:
        return
    octaves = float(np.log2(speech.pitch / speech.prompt.pitch))
    if abs(octaves) < 0.15:
        return
    moved = OF_PITCH * octaves + (1 - OF_PITCH) * (_faster(speech) or 0.0)
    said = f"Pitch and pace are those of speech played {2**moved:.2f} times as fast as the prompt."
    yield 0.0, speech.seconds, sureness(moved * np.sign(octaves), 0.28, 0.05), said


def voice(speech: Speech) -> Iterator[Found]:
    """A speaker unlike the prompt's, if the cosine of their embeddings (Resemblyzer) was measured: below 0.62."""
    if speech.similarity is not None:
        said = f"The voice is unlike the prompt's: similarity {speech.similarity:.2f}."
        yield 0.0, speech.seconds, sureness(-speech.similarity, -0.62, 0.05), said
