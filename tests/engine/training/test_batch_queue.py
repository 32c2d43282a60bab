from __future__ import annotations

from paretone.training.batches import BatchQueue
from tests.engine.training.toy_corpus import toy_corpus


def test_batches_hold_no_more_frames_than_asked_and_join_one_voice_only():
    clips = toy_corpus(20).training
    queue = BatchQueue(clips, frames=600, joined_share=0.5, seed=0)
    joined = total = 0
    for _ in range(200):
        batch = queue.next()
        lengths = [sum(clips[number].frames for number in item) for item in batch]
        assert max(lengths) * len(batch) <= 600
        assert all(len({clips[number].voice for number in item}) == 1 for item in batch)
        joined += sum(len(item) == 2 for item in batch)
        total += len(batch)
    assert 0.4 < joined / total < 0.6


def test_large_batches_are_drawn_from_more_items():
    clips = toy_corpus(20).training
    frames = 100 * max(clip.frames for clip in clips)
    queue = BatchQueue(clips, frames=frames, joined_share=0.0, seed=0)
    shares = []
    for _ in range(40):
        lengths = [clips[number].frames for item in queue.next() for number in item]
        shares.append(sum(lengths) / (max(lengths) * len(lengths)))
    assert sum(shares) / len(shares) > 0.95, "little of a batch is padding"
