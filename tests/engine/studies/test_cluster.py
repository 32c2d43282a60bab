"""A study on a local Ray cluster of two nodes, of which one joins late and is killed in the middle. On one node a study
also runs in ``tests/app/features/studies/test_presenter.py``."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paretone.errors import StudyError
from paretone.studies.running import FINISHED, WorkerLost, run
from paretone.studies.store import Store, StoredTake
from paretone.studies.study import Equipment, Outcome
from tests.engine.studies import small
from tests.engine.studies.small import Follower, finished, study, takes_in
from tests.workload import only_in_full, workload

ray = pytest.importorskip("ray", reason="the extra [cluster] is not installed")
psutil = pytest.importorskip("psutil", reason="it comes with the extra [train]")
from ray._private.node import Node  # noqa: E402
from ray.cluster_utils import Cluster as Nodes  # noqa: E402

from paretone.observer import Observer  # noqa: E402
from paretone.studies.cluster import LOCAL, Cluster  # noqa: E402

# Five minutes, the limit of other tests, are short for several nodes that begin on a machine that does much else.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
STORE = 80 * 2**20
"""Bytes of Ray's own memory on each node; the least that it takes."""
PATIENCE_SECONDS = 300.0
"""For a node to come or to be missed."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A cluster of one node, which all tests share: beginning takes longest."""
    arguments = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
        # Ray would end workers, which no test kills, where something else has filled the machine's memory.
        patched.setenv("RAY_memory_monitor_refresh_ms", "0")
        cluster = started(lambda: Nodes(initialize_head=True, connect=False, head_node_args=arguments))
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def started(start: Callable[[], object]) -> object:
    """Ray gives a node half a minute to begin, which a machine that does much else may not keep."""
    try:
        return start()
    except Exception:
        return start()


class Growing(Cluster):
    """A crew that waits for a node that joined late: on a busy machine the first worker might do everything before."""

    joined = False

    def idle(self) -> list[object]:
        waiting = super().idle()
        if not self.joined or len(self._made) == 2:
            return waiting
        return [worker for worker in waiting if self._alive[worker].node not in self._made]

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        while not self._tasks and not self._pending:
            time.sleep(0.2)
            self._fill()
        return super().wait(observer)


def kill(cluster: Nodes, node: Node) -> None:
    """Kill ``node`` with its workers, which would otherwise go on for a second and do what is left."""
    (raylet,) = node.all_processes["raylet"]
    workers = psutil.Process(raylet.process.pid).children(recursive=True)
    cluster.remove_node(node, allow_graceful=False)
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.kill()
    psutil.wait_procs(workers, PATIENCE_SECONDS)


def done(executor: Growing) -> list[int]:
    """Tasks done on each node that has worked."""
    return [int(one) for one in re.findall(r"(\d+) on node", " ".join(executor.log()))]


class Leaving(Follower):
    """Has a node join the cluster after some takes, and kills it once it has worked, in the middle of the study."""

    def __init__(self, cluster: Nodes, executor: Growing) -> None:
        super().__init__()
        self._cluster, self._executor, self.node, self.killed = cluster, executor, None, False

    def take(self, take: StoredTake) -> None:
        super().take(take)
        if len(self.takes) == 3:
            self.node = started(lambda: self._cluster.add_node(num_cpus=1, object_store_memory=STORE))
            self._executor.joined = True
        if len(done(self._executor)) == 2 and not self.killed:
            self.killed = True
            assert isinstance(self.node, Node)
            kill(self._cluster, self.node)


@pytest.mark.parametrize(
    ("address", "why", "tries"),
    [(LOCAL, r"Ray could not start on this machine \(No luck", 2), ("auto", r"no Ray cluster at 'auto' \(No luck", 1)],
)
def test_clusters_that_cannot_begin_say_so(address: str, why: str, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[dict] = []

    def failing(**arguments: object) -> None:
        began.append(arguments)
        raise Exception("No luck.")

    monkeypatch.setattr(ray, "init", failing)
    with pytest.raises(StudyError, match=why):
        Cluster(address).begin(Equipment("f5-mini"), Observer())
    assert len(began) == tries
    assert {one["address"] for one in began} == {address}, "without an address Ray joins any cluster of the machine"
    assert not ray.is_initialized()


@only_in_full("cluster")
def test_workers_that_cannot_load_the_model_say_why(nodes: Nodes, tmp_path: Path) -> None:
    # Before any test kills a node: a worker would be asked for in its place until it is missed, and never come.
    nodes.wait_for_nodes(timeout=PATIENCE_SECONDS)
    with Store(tmp_path) as store:
        store.begin(study(device="cuda"))
        with pytest.raises(StudyError, match=r"No worker could start: .*cuda"):
            run(study(device="cuda"), store, Cluster(nodes.address, load=small.load), Follower())


@only_in_full("cluster")
def test_a_node_that_joins_late_and_is_killed_loses_nothing_and_counts_nothing_twice(
    nodes: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.wait_for_nodes(timeout=PATIENCE_SECONDS)
    grid = {"steps.steps": ["off", 2, 3], "ditreducio.threshold": ["off", 1.5]}
    sentences = [f"This is sentence {number}." for number in range(workload(12, 2))]
    chosen, executor = study(sentences=sentences, seeds=[0, 1], grid=grid), Growing(nodes.address, load=small.load)
    leaving = Leaving(nodes, executor)
    try:
        with Store(tmp_path / "cluster") as store:
            store.begin(chosen)
            assert run(chosen, store, executor, leaving) == FINISHED
            log = executor.log()
    finally:
        if leaving.node is not None and not leaving.killed:
            nodes.remove_node(leaving.node)
    with capsys.disabled():
        print("", *log, sep="\n  ")
    assert leaving.killed and any("died" in line for line in log)
    assert len(done(executor)) == 2, "the node that joined late never worked"
    assert len(leaving.takes) == chosen.takes and sum(done(executor)) >= chosen.takes
    # The same as on one machine, take for take and sample for sample.
    assert finished(tmp_path / "here", chosen) == FINISHED
    there, alone = ({one.cell: one for one in takes_in(tmp_path / name)} for name in ("cluster", "here"))
    assert set(there) == set(alone)
    for cell, take in alone.items():
        mine = there[cell]
        assert (mine.take, mine.log_mel_distance, mine.metrics) == (take.take, take.log_mel_distance, take.metrics)
        assert mine.measurements.ops_ratio == take.measurements.ops_ratio
    for path in (tmp_path / "here" / "audio").iterdir():
        assert (tmp_path / "cluster" / "audio" / path.name).read_bytes() == path.read_bytes()
