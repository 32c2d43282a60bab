"""Ceilings of a device: what bounds a time, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from paretone.measure.roofline import benchmarks
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.ceilings import COMPUTE, LAUNCH, MEMORY, Ceilings
from paretone.measure.roofline.counts import Work
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


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": 99}', '{"schema": 1, "ceilings": [{"device": 1}]}'])
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
