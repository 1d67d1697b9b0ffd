"""The executor that runs tasks on a Dask cluster, and does not hang when workers do."""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
import secrets
import statistics
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from mixnorm._threads import one_thread
from mixnorm.data.blocks.remote.worker import Answer, compute, forget_here
from mixnorm.data.blocks.sources import Request
from mixnorm.exceptions import WorkerError

# A task is given up after so many attempts that ended without a result.
_ATTEMPTS = 4
# Times that a worker asks for rows before it gets all that a task may need.
_REQUESTS = 2
# A task takes too long after so many times the median of those that are finished; where none is,
# after so many times the time-out, while its worker is heard of.
_SLOW = 10
# Parts of the time-out between two looks at workers from which nothing came, and the longest pause.
_LOOKS, _PAUSE = 10, 1.0
# Seconds for which the list of workers is taken as it was.
_FRESH = 0.5


def active_client() -> Any:
    """Return the Dask client that is active in this process, or None."""
    # A client can only be active if its package is loaded.
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    # Inside a task of Dask itself, waiting for other tasks could block all of them.
    if client.asynchronous or client.status != "running" or _inside_task():
        return None
    return client


def _inside_task() -> bool:
    try:
        sys.modules["distributed"].get_worker()
    except (ValueError, AttributeError):
        return False
    return True


def is_client(found: object) -> bool:
    """Tell whether an object is a client of Dask."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(found, distributed.Client)


_EXECUTORS: weakref.WeakKeyDictionary[Any, ClusterExecutor] = weakref.WeakKeyDictionary()
_CLIENTS: dict[str, Any] = {}


def find_executor(client: Any) -> ClusterExecutor:
    """Return the executor of a client, which remembers which worker had which rows."""
    if client not in _EXECUTORS:
        _EXECUTORS[client] = ClusterExecutor(client)
    return _EXECUTORS[client]


def connect(address: str, timeout: float = 10.0) -> Any:
    """Return a client of the scheduler at an address."""
    try:
        import distributed
    except ImportError as error:
        raise WorkerError(
            f'executor={address!r} needs Dask: pip install "mixnorm[dask]"'
        ) from error
    found = _CLIENTS.get(address)
    if found is None or found.status != "running":
        try:
            make: Any = distributed.Client
            found = make(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise WorkerError(
                f"No Dask scheduler answers at {address} ({error}). Start one with `dask "
                "scheduler`, and give the address that it prints."
            ) from error
        _CLIENTS[address] = found
    return found


class ClusterExecutor:
    """The workers of a Dask cluster.

    What a worker keeps may vanish with it: its tasks are then computed again, by others. Nothing
    waits for ever. A worker from which nothing is heard within the time-out is restarted, or
    removed where no nanny watches it, and so is one whose task takes longer than the time-out and
    than ten times the median of the finished tasks of the same sum. (While no task of a sum is
    finished, a worker that still sends signs of life has ten times the time-out.)

    Parameters
    ----------
    client : dask.distributed.Client
        The client of the cluster.
    timeout : float
        Seconds.
    """

    remote = True

    def __init__(self, client: Any, timeout: float = 60.0) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be a positive number of seconds.")
        self._client, self.timeout = weakref.ref(client), float(timeout)
        #: The worker that had a part of a table before.
        self.homes: dict[Any, str] = {}
        self._threads: tuple[float, dict[str, int]] = (-1.0, {})

    @property
    def client(self) -> Any:
        """The client; raises if it cannot be used."""
        client = self._client()
        if client is None or client.status in ("closed", "closing"):
            raise WorkerError(
                "The Dask client of the table is closed. Connect a new one, and give it as "
                "executor=client."
            )
        if client.asynchronous:
            raise WorkerError(
                "The Dask client is asynchronous, or is used inside its own event loop; sums over "
                "blocks wait for their results. Give a client with asynchronous=False, and call "
                "fit from another thread, as with asyncio.to_thread."
            )
        return client

    @property
    def n_workers(self) -> int:
        """The threads of all workers; waits until there is one."""
        return sum(self.threads().values())

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address; raise if there is none."""
        when, found = self._threads
        if found and time.monotonic() - when < _FRESH:
            return found
        client = self.client
        end = time.monotonic() + self.timeout
        while True:
            try:
                found = client.nthreads(callback_timeout=self.timeout)
            except (OSError, TimeoutError) as error:
                raise WorkerError(self.silence_message()) from error
            if found:
                self._threads = time.monotonic(), found
                return found
            left = end - time.monotonic()
            with contextlib.suppress(TimeoutError):
                client.wait_for_workers(1, timeout=max(0.1, left))
            if left <= 0:
                raise WorkerError(self.empty_message())

    def look_again(self) -> None:
        """Ask the scheduler for the workers at the next use."""
        self._threads = (-1.0, {})

    def silence_message(self) -> str:
        """Return the message for a scheduler that does not answer."""
        return (
            f"The Dask scheduler did not answer within {self.timeout:g} seconds. Look whether it "
            "still runs, and connect a new client."
        )

    def empty_message(self) -> str:
        """Return the message for a cluster without workers."""
        return (
            f"The Dask cluster has had no worker for {self.timeout:g} seconds. Start one with "
            "`dask worker ADDRESS-OF-THE-SCHEDULER`, and call again."
        )

    def run(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in order. An error or an interrupt ends the other tasks."""
        inside = any(address.startswith("inproc") for address in self.threads())
        # Workers of their own process keep their limit; those in this one must not.
        with one_thread() if inside else nullcontext():
            yield from _ClusterRun(self, work, tasks).results()

    def forget(self, token: str) -> None:
        """Ask all workers to forget what they keep for a token, and do not wait for them."""
        for key in [key for key in self.homes if isinstance(key, tuple) and key[0] == token]:
            self.homes.pop(key, None)
        client = self._client()
        if client is None or client.status != "running":
            return

        async def ask() -> None:
            with contextlib.suppress(Exception):
                await client.run(forget_here, token, on_error="ignore")

        # The caller may be the garbage collector, in any thread, or the end of the process.
        with contextlib.suppress(RuntimeError):
            client.loop.add_callback(ask)


@dataclass(eq=False)
class _Attempt:
    """A task that was handed out."""

    place: int
    key: str
    future: Any
    since: float
    #: The worker that should compute it, if there is one.
    home: str | None
    #: Futures of the rows that the task is given, if any.
    inputs: Any


@dataclass
class _History:
    """What became of a task so far."""

    failures: list[str] = field(default_factory=list)
    requests: int = 0


class _ClusterRun:
    """The state of one call of ``run``."""

    def __init__(
        self, executor: ClusterExecutor, work: Callable[[Any], Any], tasks: Sequence[Any]
    ) -> None:
        self._executor, self._work, self._tasks = executor, work, tasks
        self._client, self._timeout = executor.client, executor.timeout
        self._events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._attempts: dict[str, _Attempt] = {}
        self._histories = [_History() for _ in tasks]
        self._found: dict[int, Any] = {}
        self._durations: list[float] = []
        # When a worker last gave a result; its last heartbeat, and when that was new to us.
        self._signs: dict[str, float] = {}
        self._beats: dict[str, tuple[float, float]] = {}
        # Workers that hang, and the time of the last request to restart each.
        self._hung: dict[str, float] = {}
        self._turn = 0
        now = time.monotonic()
        self._looked = self._answered = self._staffed = now

    def results(self) -> Iterator[Any]:
        """Yield the results in order."""
        pause = min(_PAUSE, self._timeout / _LOOKS)
        try:
            for place in range(len(self._tasks)):
                self._send(place)
            for place in range(len(self._tasks)):
                while place not in self._found:
                    self._collect(self._wait(pause))
                    if time.monotonic() - self._looked >= pause:
                        self._look()
                yield self._found.pop(place)
        finally:
            # The scheduler drops what nobody holds a future of.
            for attempt in self._attempts.values():
                attempt.future.release()
            self._attempts.clear()

    def _send(self, place: int) -> None:
        """Hand a task out for the first time, or again from the start."""
        task = self._tasks[place]
        self._submit(place, task.to_send() if hasattr(task, "to_send") else task)

    def _submit(self, place: int, task: Any, inputs: Any = None) -> None:
        """Hand a task out."""
        import dask

        key, home = f"sum-rows-{secrets.token_hex(16)}", self._home(place)
        # Rows may travel with a task.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            futures = None if inputs is None else self._compute_inputs(inputs)
            future = self._client.submit(
                compute, self._work, task, futures, key=key, pure=False,
                workers=None if home is None else [home], allow_other_workers=home is not None,
            )  # fmt: skip
        self._attempts[key] = _Attempt(place, key, future, time.monotonic(), home, futures)
        # Bound to neither this run nor the future, so that both can go when they are done with.
        future.add_done_callback(_Note(self._events, key))

    def _compute_inputs(self, inputs: list[Any]) -> list[Any]:
        """Return futures of Dask objects; Dask takes arrays apart from data frames."""
        parts = [list(part) for _, part in itertools.groupby(inputs, key=type)]
        return [future for part in parts for future in self._client.compute(part)]

    def _home(self, place: int) -> str | None:
        """Return the worker that had the rows of a task before, or the next one in turn."""
        try:
            threads = self._executor.threads()
        except WorkerError:
            return None  # one may still come, and else the next look raises
        # In turn, each as often as it has threads.
        turns = range(max(threads.values()))
        workers = [each for each in sorted(threads) if each not in self._hung]
        seats = [each for turn in turns for each in workers if turn < threads[each]]
        if not seats:
            return None
        key, homes = self._key(place), self._executor.homes
        if homes.get(key) not in seats:
            homes[key] = seats[self._turn % len(seats)]
            self._turn += 1
        return homes[key]

    def _key(self, place: int) -> Any:
        task = self._tasks[place]
        return getattr(task, "token", None), getattr(task, "first", place)

    def _wait(self, pause: float) -> list[str]:
        """Return the keys of tasks that have ended, after a pause at most."""
        keys = []
        with contextlib.suppress(queue.Empty):
            keys.append(self._events.get(timeout=pause))
            while True:
                keys.append(self._events.get_nowait())
        return [key for key in keys if key in self._attempts]

    def _collect(self, keys: list[str]) -> None:
        """Take the results of tasks that have ended."""
        ended = [self._attempts[key] for key in keys]
        ready = [each for each in ended if each.future.status == "finished"]
        try:
            answers = self._fetch(ready)
        except (OSError, TimeoutError):  # a worker that died or hangs has one of them
            answers = [self._fetch_one(each) for each in ready]
        for attempt, answer in zip(ready, answers, strict=True):
            if isinstance(answer, Answer):
                self._take(attempt, answer)
            else:
                self._retry(attempt, f"its result was lost ({answer})")
        for attempt in ended:
            if attempt not in ready:
                self._examine(attempt)

    def _fetch(self, attempts: list[_Attempt]) -> list[Any]:
        if not attempts:
            return []
        # A timeout needs the call inside the loop of the client.
        futures = [each.future for each in attempts]
        return self._client.sync(self._client.gather, futures, callback_timeout=self._timeout)

    def _fetch_one(self, attempt: _Attempt) -> Any:
        try:
            return attempt.future.result(timeout=min(5.0, self._timeout))
        except Exception as error:
            return type(error).__name__

    def _take(self, attempt: _Attempt, answer: Answer) -> None:
        """Keep the result of a task, or send it again with the rows that it needs."""
        self._signs[answer.worker] = time.monotonic()
        self._drop(attempt)
        place = attempt.place
        if not isinstance(answer.value, Request):
            self._durations.append(answer.seconds)
            self._found[place] = answer.value
            return
        history, task = self._histories[place], self._tasks[place]
        history.requests += 1
        # Another worker than the one that asked may get the task, and lack more rows.
        request = answer.value if history.requests <= _REQUESTS else task.largest_request()
        # The rows are kept where they go.
        self._executor.homes[self._key(place)] = answer.worker
        self._submit(place, *task.with_rows(request))

    def _examine(self, attempt: _Attempt) -> None:
        """Raise the error of a task, unless its workers died; then hand it out again."""
        from distributed import KilledWorker

        if attempt.future.status != "error":
            self._retry(attempt, f"it was {attempt.future.status}")
            return
        try:
            error = attempt.future.exception(timeout=self._timeout)
        except TimeoutError:
            self._retry(attempt, "its error was lost")
            return
        if not isinstance(error, KilledWorker):
            raise error
        worker = getattr(error.last_worker, "address", error.last_worker)
        count = error.allowed_failures + 1
        self._retry(attempt, f"{count} workers died while they computed it, the last at {worker}")

    def _drop(self, attempt: _Attempt) -> None:
        self._attempts.pop(attempt.key, None)
        attempt.future.release()

    def _retry(self, attempt: _Attempt, reason: str) -> None:
        """Hand a task out again; raise after several attempts."""
        self._drop(attempt)
        place = attempt.place
        failures = self._histories[place].failures
        failures.append(reason)
        self._executor.look_again()
        if len(failures) >= _ATTEMPTS:
            raise WorkerError(
                f"Task {place + 1} of {len(self._tasks)} of a sum over blocks ended without a "
                f"result {len(failures)} times: {'; '.join(dict.fromkeys(failures))}. Look at the "
                "logs of the workers. Those that died may have run out of memory: give them more, "
                "or use smaller blocks. Where tasks take long, give "
                f"executor=ClusterExecutor(client, timeout=...) more than {self._timeout:g} "
                "seconds."
            )
        self._send(place)

    def _look(self) -> None:
        """Look for workers that hang, and take their tasks away from them."""
        now = self._looked = time.monotonic()
        if self._client.status in ("closed", "closing"):
            raise WorkerError("The Dask client was closed while a sum over blocks was under way.")
        try:
            wait = max(1.0, self._timeout / _LOOKS)
            processing = self._client.sync(
                self._client.scheduler.processing, workers=None, callback_timeout=wait
            )
            workers = self._client.sync(self._client.scheduler.identity, callback_timeout=wait)
        except (OSError, TimeoutError) as error:
            if now - self._answered > self._timeout:
                raise WorkerError(self._executor.silence_message()) from error
            return
        now = self._answered = time.monotonic()
        if workers["workers"]:
            self._staffed = now
        elif now - self._staffed > self._timeout:
            raise WorkerError(self._executor.empty_message())
        for address, found in workers["workers"].items():
            if self._beats.get(address, (None,))[0] != found["last_seen"]:
                self._beats[address] = found["last_seen"], now
        owners = {key: address for address, keys in processing.items() for key in keys}
        self._send_lost_ones(owners, workers["workers"])
        self._end_slow_ones(owners, now)

    def _send_lost_ones(self, owners: dict[str, str], workers: dict[str, Any]) -> None:
        """Hand tasks out again whose worker is gone, and that nobody has taken.

        The scheduler does not give them to a worker that comes later, if it had none at the time.
        """
        self._executor.look_again()
        for attempt in list(self._attempts.values()):
            gone = attempt.home is not None and attempt.home not in workers
            waits = attempt.future.status == "pending" and self._owner(attempt, owners) is None
            if gone and waits and workers:
                self._drop(attempt)
                self._send(attempt.place)

    def _end_slow_ones(self, owners: dict[str, str], now: float) -> None:
        """Take tasks away from workers that take too long for them."""
        late: dict[str, str] = {}
        for attempt in self._attempts.values():
            tries = len(self._histories[attempt.place].failures)
            limit = _SLOW * self._timeout
            if self._durations:
                limit = max(self._timeout, _SLOW * statistics.median(self._durations))
            owner = self._owner(attempt, owners)
            since = max(attempt.since, self._signs.get(owner or "", 0.0))
            silent = now - self._beats.get(owner or "", (0.0, now))[1]
            if owner in self._hung:
                # It takes some time to end, and may be the only one.
                since = max(since, self._hung[owner])
                silent = min(silent, now - self._hung[owner])
            if owner is None:
                # It waits for a free worker or for rows, so that others should end meanwhile.
                since, limit = max(since, *self._signs.values(), 0.0), _SLOW * self._timeout
                if now - since > limit * 2**tries:
                    late[attempt.key] = f"no worker took it within {now - since:.0f} seconds"
            elif silent > self._timeout:
                late[attempt.key] = f"nothing was heard of {owner} for {silent:.0f} seconds"
                self._restart(owner)
            elif now - since > limit * 2**tries:
                late[attempt.key] = f"{owner} did not finish it within {now - since:.0f} seconds"
                self._restart(owner)
        for key, reason in late.items():
            self._retry(self._attempts[key], reason)

    def _owner(self, attempt: _Attempt, owners: dict[str, str]) -> str | None:
        """Return the worker that has a task, or one of the inputs that it waits for."""
        keys = [attempt.key, *(each.key for each in attempt.inputs or [])]
        return next((owners[key] for key in keys if key in owners), None)

    def _restart(self, address: str) -> None:
        """Restart a worker through its nanny, or remove it, and do not wait for that."""
        now = time.monotonic()
        if now - self._hung.get(address, -math.inf) < self._timeout:
            return
        self._hung[address] = now
        client, timeout = self._client, self._timeout

        async def restart() -> None:
            with contextlib.suppress(Exception):
                await client.scheduler.restart_workers(
                    workers=[address],
                    timeout=timeout,
                    wait_for_workers=False,
                    on_error="return",
                    stimulus_id=f"mixnorm-hung-{secrets.token_hex(4)}",
                )

        client.loop.add_callback(restart)


@dataclass(frozen=True)
class _Note:
    """A callback that notes the key of a task that has ended."""

    events: queue.SimpleQueue[str]
    key: str

    def __call__(self, future: Any) -> None:
        self.events.put(self.key)
