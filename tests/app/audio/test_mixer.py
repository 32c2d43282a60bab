"""The callback's side of the player, driven directly: no device, any block size."""

import numpy as np
import pytest

from paretone.audio.sound_system import OutputDevice, Sound
from paretone.errors import DeviceError
from paretone_app.audio.deck import Looping
from paretone_app.audio.mixer import OUT_AND_IN, Mixer, Programme, Recording, fade_laws
from paretone_app.audio.player import ALIGNMENT_TOLERANCE, BlockTimes, Mode, Player, comparison

RATE = 8000
FADE = 80
BLOCKS = [7, 80, 5000]


def noise(length: int, seed: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(seed).standard_normal(length)).astype(np.float32)


def mixer_with(*takes: np.ndarray | Recording, timing: tuple[int, ...] = ()) -> Mixer:
    mixer = Mixer(RATE)
    recordings = tuple(one if isinstance(one, Recording) else Recording(one) for one in takes)
    mixer.load(Programme(recordings, (1.0,) * len(takes), timing))
    mixer.settle()
    return mixer


def playing(*takes: np.ndarray | Recording, frames: int = 0, timing: tuple[int, ...] = ()) -> Mixer:
    """A mixer that has played ``frames`` of the first take."""
    mixer = mixer_with(*takes, timing=timing)
    mixer.play()
    rendered(mixer, frames, 100)
    return mixer


def rendered(mixer: Mixer, frames: int, block: int) -> np.ndarray:
    out = np.full(frames, np.nan, np.float32)
    for start in range(0, frames, block):
        mixer.render(out[start : start + block])
    assert not mixer.fault
    return out


def test_the_laws_keep_the_power_whatever_the_correlation() -> None:
    laws = fade_laws(FADE).astype(float)
    along = np.arange(1, FADE + 1) / (FADE + 1)
    for index, (entering, leaving) in enumerate(laws):
        correlation = index / (len(laws) - 1)
        np.testing.assert_allclose(entering**2 + leaving**2 + 2 * correlation * entering * leaving, 1, atol=1e-6)
    np.testing.assert_allclose(laws[0, 0], np.sin(np.pi / 2 * along), atol=1e-6)
    np.testing.assert_allclose(laws[-1, 0], along, atol=1e-6)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_take_is_played_bit_for_bit_then_silence(block: int) -> None:
    take = noise(1000, 1)
    mixer = playing(take)
    np.testing.assert_array_equal(rendered(mixer, 1500, block), np.append(take, np.zeros(500, np.float32)))
    assert not mixer.state.playing and mixer.state.position == 1000


@pytest.mark.parametrize("block", BLOCKS)
def test_a_fade_survives_the_borders_of_blocks(block: int) -> None:
    takes = noise(4000, 1), noise(4000, 2)
    mixer = playing(*takes)
    before = rendered(mixer, 1000, 1000)
    mixer.choose(1)
    after = rendered(mixer, 2000, block)
    np.testing.assert_array_equal(before, takes[0][:1000])
    entering, leaving = mixer.fades[mixer.jumps[-1].law]
    expected = takes[1][1000:3000].copy()
    expected[:FADE] = expected[:FADE] * entering + takes[0][1000 : 1000 + FADE] * leaving
    np.testing.assert_array_equal(after, expected)


def test_unrelated_takes_fade_with_equal_power_and_equal_ones_with_equal_gain() -> None:
    take = noise(4000, 1)
    mixer = playing(take, take.copy(), noise(4000, 2), -take, frames=500)
    mixer.choose(1)
    same = rendered(mixer, 500, 64)
    assert mixer.jumps[-1].law == OUT_AND_IN - 1
    np.testing.assert_allclose(same, take[500:1000], atol=1e-7)
    mixer.choose(2)
    rendered(mixer, 500, 64)
    assert mixer.jumps[-1].law < len(mixer.fades) // 4
    mixer.choose(0)
    rendered(mixer, 500, 64)
    mixer.choose(3)
    rendered(mixer, 500, 64)
    assert mixer.jumps[-1].law == 0


@pytest.mark.parametrize("block", BLOCKS)
def test_fading_out_and_in_never_lets_two_be_heard_and_keeps_the_place(block: int) -> None:
    takes = noise(4000, 1), noise(4000, 2)
    mixer = mixer_with(*takes)
    mixer.fade_out_and_in(True)
    mixer.play()
    rendered(mixer, 1000, 1000)
    mixer.choose(1)
    after = rendered(mixer, 1000, block)
    half = FADE // 2  # 5 ms
    falling = 0.5 + 0.5 * np.cos(np.pi * np.arange(1, half + 1) / (half + 1))
    expected = takes[1][1000:2000].copy()
    expected[:half] = takes[0][1000 : 1000 + half] * falling
    expected[half:FADE] *= falling[::-1]
    np.testing.assert_allclose(after, expected, atol=1e-7)
    assert mixer.jumps[-1].law == OUT_AND_IN
    # The same whatever is switched to: also to the very same sound.
    mixer.load(Programme(tuple(Recording(takes[0]) for _ in range(2)), (1.0, 1.0)))
    mixer.play()
    rendered(mixer, 500, 64)
    mixer.choose(1)
    rendered(mixer, 500, 64)
    assert mixer.jumps[-1].law == OUT_AND_IN
    mixer.fade_out_and_in(False)
    mixer.choose(0)
    rendered(mixer, 500, 64)
    assert mixer.jumps[-1].law != OUT_AND_IN


@pytest.mark.parametrize("block", BLOCKS)
def test_a_switch_during_a_fade_waits_for_its_end(block: int) -> None:
    takes = noise(4000, 1), noise(4000, 2), noise(4000, 3)
    mixer = playing(*takes, frames=200)
    mixer.choose(1)
    mixer.choose(2)
    rendered(mixer, 400, block)
    first, second = list(mixer.jumps)[-2:]
    assert (first.leaving, first.entering, second.leaving, second.entering) == (0, 1, 1, 2)
    assert second.frame - first.frame == FADE
    assert second.entering_position == 200 + FADE


def test_restart_mode_begins_anew_and_sync_mode_goes_on() -> None:
    takes = noise(4000, 1), noise(3000, 2)
    for timing, position in (((), 1000), ((0, 1), 0)):
        mixer = playing(*takes, frames=1000, timing=timing)
        mixer.choose(1)
        rendered(mixer, 100, 100)
        assert mixer.jumps[-1].entering_position == position
        rendered(mixer, 5000, 100)
        assert mixer.state.position == (3000 if timing else 4000)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_loop_repeats_its_region_with_a_fade_at_the_seam(block: int) -> None:
    take = noise(8000, 1)
    mixer = mixer_with(take)
    mixer.set_loop((1000, 2600))
    mixer.play()
    heard = rendered(mixer, 5000, block)
    np.testing.assert_array_equal(heard[FADE:1600], take[1000 + FADE : 2600])
    short = mixer_with(take)
    short.set_loop((100, 101))
    short.settle()
    assert short.state.loop == (100, 900), "never shorter than a tenth of a second"
    for turn in (1, 2, 3):
        start = turn * 1600
        length = min(1600, 5000 - start)
        entering, leaving = mixer.fades[list(mixer.jumps)[turn].law]
        expected = take[1000 : 1000 + length].copy()
        seam = min(FADE, length)
        expected[:seam] = expected[:seam] * entering[:seam] + take[2600 : 2600 + seam] * leaving[:seam]
        np.testing.assert_array_equal(heard[start : start + length], expected)


def test_a_seek_fades_and_stays_inside_the_loop() -> None:
    take = noise(8000, 1)
    mixer = playing(take, frames=500)
    mixer.seek(4000)
    heard = rendered(mixer, 500, 33)
    entering, leaving = mixer.fades[mixer.jumps[-1].law]
    np.testing.assert_array_equal(heard[FADE:], take[4000 + FADE : 4500])
    np.testing.assert_array_equal(heard[:FADE], take[4000 : 4000 + FADE] * entering + take[500 : 500 + FADE] * leaving)
    mixer.set_loop((1000, 3000))
    rendered(mixer, 200, 100)
    mixer.seek(7000)
    rendered(mixer, 1, 1)
    assert mixer.jumps[-1].entering_position == 2999


def test_pause_fades_out_and_resuming_fades_in_where_it_was() -> None:
    take = np.ones(8000, np.float32)
    mixer = playing(take, frames=500)
    mixer.pause()
    falling = rendered(mixer, 200, 30)
    assert (np.diff(falling[:FADE]) < 0).all() and not falling[FADE:].any()
    assert mixer.state.position == 500
    mixer.play()
    rising = rendered(mixer, 200, 30)
    assert (np.diff(rising[:FADE]) > 0).all() and (rising[FADE:] == 1).all()
    assert mixer.state.position == 700


def test_a_gain_changes_without_a_step() -> None:
    mixer = playing(np.ones(8000, np.float32), frames=500)
    mixer.set_gains((0.25,))
    heard = rendered(mixer, 500, 100)
    assert np.abs(np.diff(heard)).max() < 2 / FADE
    np.testing.assert_allclose(heard[FADE:], 0.25)
    mixer.set_gains((0.5, 0.5))
    np.testing.assert_allclose(rendered(mixer, 100, 100), 0.25)


def test_a_stream_that_is_waited_for_goes_on_at_its_new_gain() -> None:
    """A fade would begin at the old gain, which the next piece is too loud for."""
    recording = Recording.growing()
    mixer = playing(recording)
    for gain in (0.5, 0.25):  # Before its first samples, and in want of more.
        rendered(mixer, 100, 100)
        mixer.set_gains((gain,))
        recording.append(np.full(200, 1 / gain, np.float32))
        np.testing.assert_allclose(rendered(mixer, 200, 100), 1.0)


def test_loading_while_playing_fades_the_old_take_out() -> None:
    old = noise(4000, 1)
    mixer = playing(old, frames=500)
    mixer.load(Programme((Recording(noise(100, 2)),), (1.0,)))
    heard = rendered(mixer, 500, 100)
    np.testing.assert_array_equal(heard[:FADE], old[500 : 500 + FADE] * mixer.fades[0, 1])
    assert not heard[FADE:].any()


@pytest.mark.parametrize("block", BLOCKS)
def test_a_stream_is_played_while_it_grows(block: int) -> None:
    whole = noise(600_000, 1)
    recording = Recording.growing()
    mixer = playing(recording)
    heard = [rendered(mixer, 50, block)]
    assert mixer.starvations == 0 and mixer.state.starving
    for start, end in ((0, 300), (300, 1000), (1000, len(whole))):
        recording.append(whole[start:end])
        heard.append(rendered(mixer, 500, block))
    assert (mixer.starvations, mixer.starved_frames) == (1, 200)
    recording.end()
    heard.append(rendered(mixer, 2000, 500))
    expected = np.concatenate((np.zeros(50), whole[:300], np.zeros(200), whole[300:]))
    np.testing.assert_array_equal(np.concatenate(heard), expected[:3550].astype(np.float32))
    assert [(one.frame, one.entering, one.law) for one in mixer.jumps] == [(50, 0, -1), (350, -1, -1), (550, 0, -1)]
    assert mixer.state.position == 3550 - 250


def test_a_failure_becomes_silence_and_a_sentence() -> None:
    class Broken(Recording):
        def read(self, start: int, gain: float, out: np.ndarray) -> None:
            raise MemoryError("gone")

    mixer = playing(Broken(np.ones(1000, np.float32)))
    out = np.full(100, np.nan, np.float32)
    mixer.render(out)
    assert not out.any() and not mixer.state.playing
    assert "MemoryError: gone" in mixer.fault
    mixer.render(out)


# --- The player without a device --------------------------------------------------------------------------------------
def test_the_mode_follows_lengths_and_models() -> None:
    assert comparison([3.0, 3.0 + 0.9 * ALIGNMENT_TOLERANCE]).mode is Mode.SYNC
    longer = comparison([3.0, 3.31])
    assert longer.mode is Mode.RESTART and "0.31 s" in longer.reason
    assert comparison([3.0, 3.0], aligned=False).mode is Mode.RESTART


def test_without_a_device_choice_position_and_loop_still_work() -> None:
    player = Player()
    takes = [(np.zeros(24000, np.float32), 24000), (np.zeros(16000, np.float32), 16000)]
    player.load(takes)
    assert player.comparison.mode is Mode.SYNC
    player.choose(1)
    player.seek(0.5)
    assert (player.choice, player.position) == (1, 0.5)
    player.set_loop((0.2, 0.4))
    assert player.position == 0.2
    player.set_loop(None)
    player.play()
    assert not player.playing
    player.pause()
    player.seek(0.0)
    assert player.position == 0
    player.load([(np.ones(24000, np.float32), 24000)])
    for player.opening in (False, True):
        player.play()
        player.mixer.render(block := np.zeros(480, np.float32))
        assert (block[-1] > 0.5) == player.opening, "it sounds from the first block of the device that is opened"


def test_an_unusable_device_is_a_device_error_with_its_sentence() -> None:
    player = Player()
    with pytest.raises(DeviceError, match="No audio"):
        player.open(Sound(reason="No audio output device was found."))
    assert player.problem == "No audio output device was found."
    player = Player(device="no such thing")
    with pytest.raises(DeviceError, match="no such thing"):
        player.open(Sound((OutputDevice(0, "Speaker", "ALSA", 2, 48000),), 0))


def test_a_stream_without_a_device_is_received_in_silence() -> None:
    player = Player()
    player.begin_stream(24000)
    assert player.streaming and player.comparison.mode is Mode.STREAM
    player.append(np.zeros(1000, np.float32))
    player.end_stream()
    assert not player.streaming
    player.append(np.zeros(1000, np.float32))


def test_a_sound_alone_is_compared_with_nothing_and_keeps_its_place() -> None:
    player = Player()
    player.load([(np.zeros(24000, np.float32), 24000)], alone=True)
    assert player.comparison.mode is Mode.ALONE and not player.streaming and not player.busy
    player.seek(0.5)
    assert player.position == pytest.approx(0.5, abs=1e-4)
    player.load([(np.zeros(24000, np.float32), 24000)] * 2)
    assert player.comparison.mode is Mode.SYNC


SOUND_RATE = 24_000


@pytest.fixture
def player() -> Player:
    made = Player()
    made.load([(np.zeros(4 * SOUND_RATE, np.float32), SOUND_RATE)])
    return made


def repeated(player: Player) -> tuple[float, float] | None:
    """What the player itself repeats, in seconds."""
    loop = player.mixer.state.loop
    return None if loop is None else (loop[0] / player.rate, loop[1] / player.rate)


def test_the_player_repeats_what_is_put_and_nothing_that_is_empty(player: Player) -> None:
    looping = Looping(player)
    looping.put((1.0, 2.0))
    assert looping.part == (1.0, 2.0) and repeated(player) == pytest.approx((1.0, 2.0), abs=0.001)
    looping.put((2.0, 2.0))
    assert looping.part is None and repeated(player) is None
    assert looping.last == (1.0, 2.0), "it can be repeated again"


def test_a_part_goes_with_what_it_is_a_part_of(player: Player) -> None:
    looping = Looping(player)
    looping.put((1.0, 3.0))
    looping.fit(4.0)
    assert looping.part == (1.0, 3.0), "it is still there"
    looping.fit(2.0)
    assert looping.part is None and looping.last is None
    looping.put((0.5, 1.0))
    looping.forget()
    assert looping.part is None and looping.last is None and repeated(player) is None


def test_blocks_asked_for_at_once_are_heard_one_after_another() -> None:
    times, seconds, late = BlockTimes(), 0.01, 0.02
    asked = [0.06 * burst + (late if burst == 50 else 0.0) for burst in range(300) for _ in range(6)]
    begun = np.array([times.begin(10.0 + one, seconds, buffered=0.18) for one in asked]) - 10.0
    even = seconds * np.arange(len(begun))
    assert np.abs(begun - even)[:300].max() < 0.002
    assert late - 0.002 < (begun - even)[300:306].min(), "a block is never heard before it is asked for"
    assert np.abs(begun - even)[-600:].max() < 0.002, "a delay is made up for"
    assert np.diff(begun).min() > 0, "the playhead never stands still"
    assert times.begin(60.0, seconds, 0.18) == 60.0, "a pause ends the row"
