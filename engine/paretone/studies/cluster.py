"""Workers on a Ray cluster: one per GPU or, without GPUs, per core. Extra ``[cluster]``. Torch-free.

Every worker holds its own model and judges. This process hands out tasks, stores results in the study's file and gives
the task of a dead worker to another; so nothing is lost, and nothing counts twice. All machines need the same version
of Paretone, and the model's files in the same place.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from paretone import errors
from paretone.errors import StudyError
from paretone.extras import NO_CLUSTER
from paretone.models.base import SpeechModel
from paretone.observer import Observer
from paretone.studies.running import WorkerLost
from paretone.studies.study import Equipment, Outcome, Task

if TYPE_CHECKING:
    from paretone.studies.execution import TaskRunner

_CONNECT_SECONDS, _ANSWER_SECONDS, _LOOKUP_SECONDS = 3.0, 1.0, 4.5
"""Timeouts in seconds: of a connection, of the answer to a greeting, and of everything, name look-up included."""
_SCHEME = "ray://"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Opening bytes of an HTTP/2 client, Ray's protocol: preface and empty settings (RFC 9113, sections 3.4 and 6.5)."""
_SETTINGS = 4
"""Type of a server's first frame."""


def require_cluster(address: str) -> None:
    """Raise :class:`StudyError` if ``address`` is not ``HOST:PORT``, or no possible Ray cluster listens there. A silent
    listener may be a busy cluster, and passes."""
    host, _, port = address.removeprefix(_SCHEME).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise StudyError(f"{address!r} is no address of a Ray cluster; give HOST:PORT, 'auto' or 'local'.")
    found: list[str] = []
    # A thread, because a name look-up has no timeout: after ours, the thread is left to end by itself.
    asking = threading.Thread(target=lambda: found.append(_why_not(host.strip("[]"), int(port))), daemon=True)
    asking.start()
    asking.join(_LOOKUP_SECONDS)
    why = found[0] if found else f"no answer within {_LOOKUP_SECONDS:g} seconds"
    if why:
        raise _no_cluster(address, why)


def _no_cluster(address: str, why: str) -> StudyError:
    return StudyError(
        f"There is no Ray cluster at {address!r} ({why}); start one with 'ray start --head', or give the address "
        f"{LOCAL!r} for one of this machine alone."
    )


def _why_not(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "1":
                return ""
            connection.settimeout(_ANSWER_SECONDS)
            connection.sendall(_GREETING)
            try:
                answer = connection.recv(9)
            except TimeoutError:
                return ""
            return "" if len(answer) > 3 and answer[3] == _SETTINGS else "another program listens there"
    except TimeoutError:
        return "no answer"
    except (OSError, UnicodeError) as error:
        return (isinstance(error, OSError) and error.strerror) or str(error)


# --- Workers ----------------------------------------------------------------------------------------------------------
AUTO = "auto"
"""Address of the cluster that this machine belongs to."""
LOCAL = "local"
"""Address of a cluster on this machine alone, started for the study."""
_ATTEMPTS = 2
"""Attempts to start a cluster: a busy machine may exceed Ray's limit of half a minute."""
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
_POLL_SECONDS = 0.2
_FILL_SECONDS = 5.0
"""Interval of checking for new nodes."""
PATIENCE_SECONDS = 120.0
"""Longest wait without any worker."""


@dataclass(frozen=True)
class _Ready:
    fingerprint: str
    node: str


class Worker:
    """A worker in another process, on this or another machine."""

    def __init__(self, equipment: Equipment, load: Callable[..., SpeechModel] | None) -> None:
        self._equipment, self._load = equipment, load
        self._runner: TaskRunner | None = None

    def ready(self) -> _Ready | str:
        """Load everything; returns a sentence on failure."""
        import ray

        from paretone.models import load_model
        from paretone.studies.execution import TaskRunner

        try:
            self._runner = TaskRunner(self._equipment, self._load or load_model)
            info = self._runner.equip(Observer()).info
        except Exception as error:
            return errors.sentence(error, "loading the model for a study")
        return _Ready(info.all_weights, ray.get_runtime_context().get_node_id())

    def carry_out(self, task: Task) -> Outcome:
        """Do a task; requires :meth:`ready`."""
        assert self._runner is not None
        return self._runner.carry_out(task, Observer())


class Cluster:
    """Workers on the Ray cluster at ``address``; see :class:`paretone.studies.running.TaskExecutor`.

    ``workers``: number of workers, by default the number of GPUs, or of cores without GPUs. ``load`` replaces
    :func:`paretone.models.load_model`.
    """

    def __init__(
        self, address: str = AUTO, workers: int | None = None, load: Callable[..., SpeechModel] | None = None
    ) -> None:
        self._address, self._wanted, self._load = address, workers, load
        self._ray: Any = None
        """The module ``ray``, once connected."""
        self._ours = False
        """Whether this object must close the connection to Ray."""
        self._equipment = Equipment("")
        self._pending: dict[object, Any] = {}
        """Starting workers, by the reference of their readiness."""
        self._alive: dict[Any, _Ready] = {}
        self._tasks: dict[object, Any] = {}
        """Busy workers, by the reference of their outcome."""
        self._log: list[str] = []
        self._has_graphics = False
        self._filled = 0.0
        """Monotonic time of the last request for workers."""
        self._made: Counter[str] = Counter()
        """Number of finished tasks, by node."""

    # --- Beginning and ending -----------------------------------------------------------------------------------------
    def begin(self, equipment: Equipment, observer: Observer) -> str:
        """Connect, and wait for the first worker."""
        self._connect(observer)
        self._equipment = equipment
        self._has_graphics = self._ray.cluster_resources().get("GPU", 0) >= 1
        self._fill()
        observer.status(f"Waiting for {len(self._pending)} workers")
        while not self._alive:
            observer.check()
            self._add_workers(self._ray.wait(list(self._pending), timeout=_POLL_SECONDS)[0])
            if not self._alive and not self._pending:
                raise StudyError(f"No worker could start: {self._log[-1]}")
        return next(iter(self._alive.values())).fingerprint

    def _connect(self, observer: Observer) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if find_spec("ray") is None:
            raise StudyError(NO_CLUSTER)
        if self._address not in (AUTO, LOCAL):
            observer.status("Looking for the cluster")
            require_cluster(self._address)
        import ray

        self._ray = ray
        if not ray.is_initialized():
            observer.status("Connecting to Ray")
            if self._address == LOCAL:
                _begin_here(ray)
            else:
                try:
                    ray.init(address=self._address, **_QUIET)
                except (Exception, SystemExit) as error:  # Ray exits the process if a cluster does not answer.
                    raise _no_cluster(self._address, _first_line(error)) from error
            self._ours = True

    def _fill(self) -> None:
        """Request missing workers: up to the wanted number, or one per GPU or core of the cluster, which may grow."""
        self._filled = time.monotonic()
        resource = "GPU" if self._has_graphics else "CPU"
        count = self._wanted or max(1, int(self._ray.cluster_resources().get(resource, 1)))
        needs = {"num_gpus": 1} if self._has_graphics else {"num_cpus": 1}
        # Only this process restarts a worker: it alone knows the worker's task.
        kind = self._ray.remote(max_restarts=0, max_task_retries=0, **needs)(Worker)
        paths = os.pathsep.join(path for path in sys.path if path)
        for _ in range(count - len(self._alive) - len(self._pending)):
            # It starts when a machine has room.
            actor = kind.options(runtime_env={"env_vars": {"PYTHONPATH": paths}}).remote(self._equipment, self._load)
            self._pending[actor.ready.remote()] = actor

    def end(self) -> None:
        if self._ray is None:
            return
        for actor in (*self._alive, *self._pending.values()):
            self._ray.kill(actor)
        self._alive, self._pending, self._tasks = {}, {}, {}
        if self._ours:
            self._ray.shutdown()

    # --- Working ------------------------------------------------------------------------------------------------------
    @property
    def size(self) -> int:
        return max(1, len(self._alive))

    def idle(self) -> list[object]:
        busy = set(self._tasks.values())
        return [actor for actor in self._alive if actor not in busy]

    def start(self, worker: Any, task: Task) -> None:
        self._tasks[worker.carry_out.remote(task)] = worker

    def wait(self, observer: Observer) -> list[tuple[object, Outcome | WorkerLost]]:
        """Finished tasks; empty if a further worker became ready."""
        lonely_since = time.monotonic()
        while True:
            observer.check()
            watched = [*self._tasks, *self._pending]
            if not self._alive and (not watched or time.monotonic() - lonely_since > PATIENCE_SECONDS):
                raise StudyError(
                    "All workers on the cluster are gone; finished takes are kept: start the "
                    "cluster and run the same command again."
                )
            if time.monotonic() - self._filled > _FILL_SECONDS:
                self._fill()
                watched = [*self._tasks, *self._pending]
            ready = self._ray.wait(watched, timeout=_POLL_SECONDS)[0]
            if not ready:
                continue
            came = [(self._tasks.pop(one), one) for one in ready if one in self._tasks]
            more = self._add_workers([one for one in ready if one in self._pending])
            if came or more:
                return [(worker, self._outcome(worker, one)) for worker, one in came]

    def _outcome(self, worker: object, reference: object) -> Outcome | WorkerLost:
        try:
            outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            why = _first_line(error)
            node = self._alive.pop(worker).node
            # An unreachable but living worker would keep its machine's room.
            self._ray.kill(worker)
            self._log.append(f"A worker on node {node[:8]} died ({why}); its task was given to another.")
            self._fill()
            return WorkerLost(why)
        self._made[self._alive[worker].node] += 1
        return outcome

    def _add_workers(self, references: list[object]) -> int:
        """Take ready workers into service; returns their number."""
        came = 0
        for one in references:
            actor = self._pending.pop(one)
            try:
                said = self._ray.get(one)
            except self._ray.exceptions.RayError as error:
                said = f"A worker died while it loaded the model: {_first_line(error)}"
            if isinstance(said, str):
                self._log.append(said)
                continue
            expected = next(iter(self._alive.values()), said).fingerprint
            if said.fingerprint != expected:
                self._log.append(f"The worker on node {said.node[:8]} has other weights; it is not used.")
                self._ray.kill(actor)
                continue
            self._alive[actor] = said
            came += 1
        return came

    def log(self) -> list[str]:
        done = ", ".join(f"{count} on node {node[:8]}" for node, count in self._made.items())
        return [*([f"Tasks done: {done}."] if done else []), *self._log]


def _begin_here(ray: Any) -> None:
    """Start a cluster on this machine alone. Raises :class:`StudyError`."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            # Without an address Ray would join any cluster already running on this machine.
            ray.init(address="local", include_dashboard=False, **_QUIET)
            return
        except Exception as error:  # Ray raises plain exceptions if a node starts too slowly.
            ray.shutdown()
            if not left:
                raise StudyError(
                    f"Ray could not start on this machine ({_first_line(error)}); try again when less is running, or "
                    "run the study without Ray."
                ) from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__
