"""A fixed number of daemon threads that do jobs in turn.

A call over the network may hang, because Flower's client tries again for ever while the SuperLink
is away. Such a call is made on a thread, so that the caller can stop waiting for it.
"""

from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import Generic, TypeVar

T = TypeVar("T")
LOOK_PAUSE = 0.02  # seconds between two looks at a job that is waited for


class Job(Generic[T]):
    """A function that a worker calls, and then its result or its error."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.function = function
        self.is_cancelled = False
        self._result: T
        self._error: BaseException | None = None
        self._done = Event()

    @property
    def is_done(self) -> bool:
        """Whether the function has returned or raised."""
        return self._done.is_set()

    def run(self) -> None:
        """Call the function, unless the job was cancelled."""
        if self.is_cancelled:
            self._done.set()
            return
        try:
            self._result = self.function()
        except BaseException as error:  # `result` raises it again
            self._error = error
        self._done.set()

    def wait(self, end: float) -> bool:
        """Wait until the job is done or the time is up; return whether it is done."""
        while not self._done.wait(LOOK_PAUSE):
            if monotonic() >= end:
                return False
            sleep(LOOK_PAUSE)
        return True

    def result(self) -> T:
        """Return what the function returned, or raise what it raised; only once it is done."""
        if self._error is not None:
            raise self._error
        return self._result


class Workers:
    """Daemon threads that do jobs in the order in which they were submitted.

    A thread starts when there is work and ends when there is none. Daemon threads cannot keep the
    process alive.

    Args:
        most: Largest number of threads at the same time.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._jobs: deque[Job[object]] = deque()
        self._running = 0
        self._lock = Lock()

    def submit(self, function: Callable[[], T]) -> Job[T]:
        """Return a job that a thread will do as soon as one is free."""
        job = Job(function)
        with self._lock:
            self._jobs.append(job)  # type: ignore[arg-type]
            if self._running < self.most:
                self._running += 1
                Thread(target=self._work, daemon=True, name="fedcohort-superlink").start()
        return job

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._running -= 1
                    return
                job = self._jobs.popleft()
            job.run()
