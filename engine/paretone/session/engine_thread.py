"""The engine thread: the single owner of models and device.

Commands wait in a queue and run one at a time. Cancelling and shutting down take effect at once: they set a token that
the running job checks at least once per step, layer trial or token. Every job ends with exactly one of ``JobFinished``,
``JobFailed`` and ``JobCancelled``; a failure never ends the thread. While the engine is held, the check blocks.

Importing this module does not import torch: the thread does, once it runs.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from paretone import errors
from paretone.errors import Cancelled, CheckpointError, DeviceError
from paretone.models.base import SpeechModel
from paretone.session.commands import Cancel, Command, Hold, LoadModel, PauseStudy, Release, ShutDown
from paretone.session.events import EngineHeld, EngineStatus, Event, JobCancelled, JobFailed, JobFinished

if TYPE_CHECKING:
    from paretone.session.executor import Executor

_log = logging.getLogger(__name__)


class _Token(threading.Event):
    """Cancellation token checked by a job at every step. While the engine is held, checking blocks."""

    def __init__(self, wait: Callable[[], None]) -> None:
        super().__init__()
        self._wait = wait

    def is_set(self) -> bool:
        self._wait()
        return super().is_set()


class Posting:
    """A thread that posts events."""

    def __init__(self, post: Callable[[Event], None], work: Callable[[], None], name: str) -> None:
        self._sink = post
        # A daemon, so that a front end that dies without shutting down leaves no process.
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds for the thread to end; returns whether it has."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _post(self, event: Event) -> None:
        try:
            self._sink(event)
        except Exception:
            _log.exception("The front end failed to take %s.", type(event).__name__)


class EngineThread(Posting):
    """Takes commands from any thread and posts events. ``post`` is called from the engine thread, and from threads that
    cancel a job or submit one that never starts; it must be thread-safe and quick. ``load`` replaces
    :func:`paretone.models.load_model`."""

    def __init__(self, post: Callable[[Event], None], load: Callable[..., SpeechModel] | None = None) -> None:
        super().__init__(post, self._run, "engine")
        self._load = load
        self._changed = threading.Condition()
        # Guarded by the condition:
        self._waiting: deque[Command] = deque()
        self._running: int | None = None
        self._cancelled = threading.Event()
        self._pausing = threading.Event()
        self._shut_down: ShutDown | None = None
        self._held = False
        self._resting = False
        """Whether the thread waits for work or for release."""

        self._executor: Executor | None = None
        self._device_lost = False
        """Whether the last job failed because its device was lost."""
        self._closed = DeviceError("The engine has not started yet.")

    def start(self) -> None:
        """Start the thread. It posts ``EngineReady`` once torch is imported."""
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Queue ``command``. After :class:`ShutDown`, jobs are cancelled at once. Raises :class:`TypeError` for other
        objects, and :class:`ValueError` for a job number in use or 0."""
        if isinstance(command, Cancel):
            self.cancel(command.target)
        elif isinstance(command, PauseStudy):
            self.pause(command.target)
        elif isinstance(command, Hold):
            self.hold()
        elif isinstance(command, Release):
            self.release()
        elif isinstance(command, ShutDown):
            with self._changed:
                self._shut_down = self._shut_down or command
                self._cancelled.set()
                self._changed.notify()
        elif not isinstance(command, Command) or not command.carried_out_by:
            raise TypeError(f"{type(command).__name__} is not a command that can be carried out.")
        else:
            self._enqueue(command)

    def cancel(self, job: int) -> None:
        """Cancel ``job``, running or waiting; without effect after its end."""
        with self._changed:
            if job == self._running:
                self._cancelled.set()
                self._changed.notify_all()
                return
            found = next((one for one in self._waiting if one.job == job), None)
            if found is None:
                return
            self._waiting.remove(found)
        self._post(JobCancelled(job))

    def pause(self, job: int) -> None:
        """Pause the study of ``job`` after the current takes; a waiting one is cancelled."""
        with self._changed:
            if job == self._running:
                self._pausing.set()
                self._changed.notify_all()
                return
        self.cancel(job)

    def hold(self) -> None:
        """Compute nothing until :meth:`release`; see :class:`paretone.session.commands.Hold`."""
        with self._changed:
            resting = self._resting and not self._held
            self._held = True
        if resting:
            self._post(EngineHeld(0))

    def release(self) -> None:
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def _enqueue(self, command: Command) -> None:
        with self._changed:
            if command.job <= 0 or command.job == self._running or any(one.job == command.job for one in self._waiting):
                raise ValueError(f"The job number {command.job} is taken; jobs are numbered from 1.")
            too_late = self._shut_down is not None
            if not too_late:
                self._waiting.append(command)
                self._changed.notify()
        if too_late:
            self._post(JobCancelled(command.job))

    # --- On the engine thread ----------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._open_executor()
            while (command := self._next()) is not None:
                outcome = self._outcome(command)
                with self._changed:
                    self._running = None
                self._post(outcome)
                if self._executor is not None and not isinstance(outcome, JobFinished):
                    # Only now has the traceback released the job's memory.
                    self._executor.tidy()
                if self._device_lost:
                    self._recover()
        finally:
            self._executor = None
            gc.collect()
            with self._changed:
                left = list(self._waiting)
                self._waiting.clear()
            for command in left:
                self._post(JobCancelled(command.job))

    def _open_executor(self) -> None:
        """Import torch and inspect the machine. After a failure the thread lives on; jobs fail with the reason."""
        self._post(EngineStatus(0, "Loading PyTorch…"))
        try:
            executor = import_module("paretone.session.executor")
            self._executor = executor.Executor(self._load or import_module("paretone.models").load_model)
        except Exception as error:
            _log.exception("The engine could not start.")
            self._closed = DeviceError(
                f"PyTorch could not be started ({type(error).__name__}: {error}); set Paretone up again."
            )
            self._post(EngineStatus(0, str(self._closed)))
        else:
            self._post(self._executor.ready)

    def _next(self) -> Command | None:
        """Wait for the next job; ``None`` to end."""
        while True:
            self._rest(lambda: self._shut_down or (self._waiting and not self._held))
            with self._changed:
                if self._shut_down:
                    return None
                if self._waiting and not self._held:  # Neither cancelled nor held meanwhile.
                    command = self._waiting.popleft()
                    self._running = command.job
                    self._cancelled = threading.Event() if command.timed else _Token(self._wait_while_held)
                    self._pausing = _Token(self._wait_while_held)
                    return command

    def _rest(self, over: Callable[[], object]) -> None:
        """Wait until ``over``; announce that the engine is held."""
        with self._changed:
            self._resting = True
            held = self._held
        if held:
            self._post(EngineHeld(0))
        with self._changed:
            self._changed.wait_for(over)
            self._resting = False

    def _wait_while_held(self) -> None:
        """Block the running job until release or cancellation."""
        tokens = self._cancelled, self._pausing

        def over() -> bool:
            # Plain event checks: the token's own check would block here again.
            return not self._held or self._shut_down is not None or any(map(threading.Event.is_set, tokens))

        if not over():
            self._rest(over)

    def _outcome(self, command: Command) -> Event:
        try:
            if self._executor is None:
                raise self._closed
            self._executor.carry_out(command, self._post, self._cancelled, self._pausing)
            return JobFinished(command.job)
        except Cancelled:
            return JobCancelled(command.job)
        except BaseException as error:  # Not even a library's SystemExit may end the thread.
            self._device_lost = self._executor is not None and errors.is_device_lost(error)
            device = self._executor.device if self._executor else "cpu"
            sentence = errors.sentence(error, command.doing, device, "The engine continues; details are in the log.")
            choices = (error.candidates, error.files) if isinstance(error, CheckpointError) else ((), ())
            return JobFailed(command.job, sentence, errors.details(error), *choices)

    def _recover(self) -> None:
        """Reload the model after its device was lost."""
        self._device_lost = False
        if self._executor is None:
            return
        try:
            self._executor.recover(self._post)
        except Exception as error:
            _log.exception("The model could not be loaded again.")
            sentence = errors.sentence(error, LoadModel.activity)
            self._post(EngineStatus(0, f"The model could not be reloaded; load it again. {sentence}"))
