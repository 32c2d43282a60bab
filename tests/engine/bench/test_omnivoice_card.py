"""The bench of graphics cards, on a small network and a processor: graphs are recorded by running again."""

from dataclasses import replace

import pytest
import torch

from paretone import bench
from paretone.bench.masked import EXACT, OFFICIAL, random_request
from paretone.errors import DeviceError
from paretone.measure.roofline.ceilings import Ceilings
from paretone.models.omnivoice.higgs import HiggsConfig
from tests.engine.bench.test_masked import SMALL
from tests.engine.models.kernels.test_graphs import Again
from tests.packages import needs
from tests.peers import omnivoice_card
from tests.peers.__main__ import PEERS
from tests.peers.omnivoice_card import GRAPHED, Case

pytestmark = needs("transformers")
CPU = torch.device("cpu")
CEILINGS = Ceilings("a card", "seconds", {"float32": 1e11, "bfloat16": 4e11}, {"float32": 1e10, "bfloat16": 1e10}, 1e-6)
DECODER = replace(HiggsConfig(), latent=16, decoder_width=64, semantic_width=16, codebook_width=8)


def case(record: Again) -> Case:
    decoder = replace(DECODER, codebook_size=SMALL.mask, bandwidth=0.5)
    return Case(SMALL, decoder, random_request(SMALL, 6, 5, 40, CPU), CPU, steps=4, record=record)


def test_ways_are_compared_with_the_floor() -> None:
    record = Again()
    rows, headline, (low, high) = omnivoice_card.canvases(case(record), 2, CEILINGS)
    by_way = {row["way"]: row for row in rows}
    assert list(by_way) == [OFFICIAL, EXACT, "+ bfloat16_all", GRAPHED]
    assert by_way[GRAPHED]["speed-up"] == headline and low <= headline <= high
    assert record.recorded == 1 and record.replayed >= 3 * 4, "the last way is the recorded one"
    assert by_way[OFFICIAL]["floor (ms)"] == by_way[EXACT]["floor (ms)"] > by_way[GRAPHED]["floor (ms)"] > 0
    for row in rows:
        assert row["over the floor"] == pytest.approx(row["ms"] / row["floor (ms)"])
    assert by_way[OFFICIAL]["launches per step"] > by_way[EXACT]["launches per step"]


def test_first_audio_is_a_decoded_block() -> None:
    record = Again()
    row = omnivoice_card.first_audio(case(record), 2)
    assert 0 < row["ms"] <= row["p90 (ms)"]
    assert record.recorded == 1 and "CUDA graphs, decoded" in row["way"]


def test_a_graph_that_cannot_be_recorded_is_no_figure() -> None:
    def fails(run: object) -> None:
        raise RuntimeError("no room")

    with pytest.raises(DeviceError, match=r"No CUDA graph could be recorded of a step .* \(no room\)"):
        omnivoice_card.canvases(case(fails), 1, CEILINGS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_processor_is_refused() -> None:
    with pytest.raises(DeviceError, match="needs an NVIDIA graphics card"):
        bench.main(["omnivoice-card"], known=PEERS)
