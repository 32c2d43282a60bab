"""Ceilings of a device, work by formula, and the published table that follows from both."""

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from paretone.measure.roofline import benchmarks, counts, published
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.ceilings import COMPUTE, LAUNCH, MEMORY, Ceilings
from paretone.measure.roofline.clock import counted
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import ATTENTION, EMBEDDING, FEED_FORWARD, HEAD, PROJECTIONS, SAMPLING
from tests.engine.measure.roofline.known import ceilings

CPU = torch.device("cpu")


def test_what_takes_longest_bounds():
    known = ceilings()
    assert known.bound(Work(1e9, 1e3), "float32", 1) == COMPUTE
    assert known.bound(Work(1e3, 1e9), "float32", 1) == MEMORY
    assert known.bound(Work(1e3, 1e3), "float32", 5) == LAUNCH
    assert known.floor(Work(1e9, 1e9), "float32") == pytest.approx(0.1)
    assert known.ridge("float32") == 10
    # What was not measured in a precision is float32's.
    assert known.seconds(Work(4e11, 1e10), "int8") == (1.0, 1.0)


def test_graphs_launch_by_their_own_ceiling():
    known = ceilings(graph_launch_seconds=1e-7)
    assert known.launching(10) == pytest.approx(1e-5)
    assert known.launching(10, graphed=True) == pytest.approx(1e-6)
    assert ceilings().launching(10, graphed=True) == pytest.approx(1e-5)


def test_ceilings_are_kept_per_device(monkeypatch, tmp_path):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "new"))
    one, other = ceilings(), ceilings(device="another", graph_launch_seconds=2e-7)
    assert store.kept(one.key) is None
    store.keep(one)
    store.keep(other)
    assert store.kept(one.key) == one and store.kept(other.key) == other
    store.keep(replace(one, launch_seconds=3e-6))
    assert store.kept(one.key).launch_seconds == 3e-6 and store.kept(other.key) == other


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": 99}', '{"schema": 2, "ceilings": [{"device": 1}]}'])
def test_a_damaged_file_counts_as_none(monkeypatch, tmp_path, content):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    (tmp_path / store.FILE).write_text(content)
    assert store.kept(ceilings().key) is None


def test_ceilings_that_are_no_numbers_are_refused():
    data = ceilings().to_json()
    assert Ceilings.from_json(data) == ceilings()
    with pytest.raises(ValueError, match="positive"):
        Ceilings.from_json(data | {"launch_seconds": -1.0})
    with pytest.raises(ValueError, match="float32"):
        Ceilings.from_json(data | {"operations": {"int8": 1.0}})


@pytest.mark.slow
def test_this_machine_has_ceilings(monkeypatch):
    monkeypatch.setitem(benchmarks.SIZES, "cpu", (256,))
    monkeypatch.setitem(benchmarks.COPIED, "cpu", 2**22)
    measured = benchmarks.measure(CPU)
    assert measured.device and measured.threads == torch.get_num_threads()
    # Orders of magnitude only, for a unit that was mistaken: how fast the machine is, and how busy, is not known.
    assert measured.operations["float32"] > 1e6 and measured.bytes["float32"] > 1e6
    assert 1e-9 < measured.launch_seconds < 0.1
    assert Ceilings.from_json(json.loads(json.dumps(measured.to_json()))) == measured


def test_products_and_attention_are_counted_as_torch_counts_them():
    rows, hidden, queries, keys, inner = 7, 24, 32, 16, 40
    x = torch.randn(rows, hidden)
    with FlopCounterMode(display=False) as counter:
        F.linear(x, torch.randn(queries + 2 * keys, hidden))
        F.linear(torch.randn(rows, queries), torch.randn(hidden, queries))
    assert counts.projections(rows, hidden, queries, keys).operations == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        F.linear(F.silu(F.linear(x, torch.randn(2 * inner, hidden)))[:, :inner], torch.randn(hidden, inner))
    assert counts.feed_forward(rows, hidden, inner, gated=True).operations == counter.get_total_flops()
    query = torch.randn(2, 4, rows, 8)
    with FlopCounterMode(display=False) as counter:
        (query @ query.transpose(-1, -2)) @ query
    assert counts.attention(2, rows, 32, 32).operations == counter.get_total_flops()


def test_bytes_are_those_of_the_tensors():
    work = counts.linear(7, 24, 32, width=4)
    tensors = torch.randn(7, 24), torch.randn(24, 32), torch.randn(7, 32)
    assert work.bytes == sum(one.numel() * one.element_size() for one in tensors)
    assert counts.linear(7, 24, 32, width=4, weight_width=1).bytes == work.bytes - 3 * 24 * 32
    # A token that sees 100 keys: its query, all keys and values, what comes of it.
    assert counts.attention(1, 1, 32, 16, width=2, seen=100).bytes == 2 * (32 + 2 * 100 * 16 + 32)


def test_operators_are_counted_without_views():
    weight, x = torch.randn(6, 5), torch.randn(3, 5)
    launched, work = counted(lambda: F.linear(x, weight).view(2, 9).transpose(0, 1).add_(1.0))
    assert launched == 2
    assert work.operations == 2 * 3 * 5 * 6
    assert work.bytes == 4 * (3 * 5 + 6 * 5 + 3 * 6) + 4 * 2 * 18


def test_the_processors_own_attention_is_counted():
    query = torch.randn(1, 2, 6, 8)
    launched, work = counted(lambda: F.scaled_dot_product_attention(query, query, query))
    assert launched == 1
    assert work.operations == counts.attention(1, 6, 16, 16).operations


TABLE = {
    # component: operations, megabytes, microseconds, calls, milliseconds in all, as the table prints them
    HEAD: ("1.01e+10", "27.9", "10.1", 32, "0.32"),
    FEED_FORWARD: ("1.13e+10", "32.4", "11.3", 896, "10.1"),
    PROJECTIONS: ("7.55e+09", "22.4", "7.5", 896, "6.8"),
    ATTENTION: ("1.47e+09", "7.4", "2.5", 896, "2.2"),
    EMBEDDING: ("4.9e+06", "11.1", "3.7", 32, "0.12"),
    SAMPLING: ("3.7e+07", "59", "20", 32, "0.63"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_row_of_the_table(name):
    operations, megabytes, microseconds, calls, milliseconds = TABLE[name]
    report = published.report()
    one = next(component for _, component in report.components() if component.name == name)

    def shown(value: float, like: str) -> str:
        return f"{value:.{len(like.partition('.')[2])}f}"

    digits = len(operations.partition(".")[2].partition("e")[0])
    assert f"{one.work.operations:.{digits}e}" == operations
    assert shown(one.work.bytes / 1e6, megabytes) == megabytes
    assert shown(report.ceilings.floor(one.work, one.precision) * 1e6, microseconds) == microseconds
    assert one.calls == calls
    assert shown(one.floor(report.ceilings) * 1e3, milliseconds) == milliseconds
