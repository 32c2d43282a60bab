"""The player without a device. With one: ``tests/end_to_end/test_audio_sink.py``."""

from __future__ import annotations

import numpy as np
import pytest

from paretone.audio.sound_system import OutputDevice, Sound
from paretone.errors import DeviceError
from paretone_app.audio.deck import Looping
from paretone_app.audio.player import ALIGNMENT_TOLERANCE, Mode, Player, comparison


def test_the_mode_follows_lengths_and_models() -> None:
    assert comparison([3.0, 3.0 + 0.9 * ALIGNMENT_TOLERANCE]).mode is Mode.SYNC
    longer = comparison([3.0, 3.31])
    assert longer.mode is Mode.RESTART
    assert "0.31 s" in longer.reason
    assert comparison([3.0, 3.0], aligned=False).mode is Mode.RESTART


def test_without_a_device_choice_position_and_loop_still_work() -> None:
    player = Player()
    takes = [(np.zeros(24000, np.float32), 24000), (np.zeros(16000, np.float32), 16000)]
    player.load(takes)
    assert player.comparison.mode is Mode.SYNC
    player.choose(1)
    player.seek(0.5)
    assert (player.choice, player.position) == (1, 0.5)
    player.set_loop(0.2, 0.4)
    assert player.position == 0.2
    player.clear_loop()
    player.play()
    assert not player.playing
    player.pause()
    player.seek(0.0)
    assert player.position == 0


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
    assert player.streaming
    assert player.comparison.mode is Mode.STREAM
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


RATE = 24_000


@pytest.fixture
def player() -> Player:
    made = Player()
    made.load([(np.zeros(4 * RATE, np.float32), RATE)])
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
