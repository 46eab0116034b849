"""Carry out disturbances: each function begins one and returns what ends it."""

import signal
from collections.abc import Callable
from time import monotonic, sleep

from chaos.federation import FAKETIME, ChaosFederation, client_process
from chaos.schedule import Disturbance

Ending = Callable[[], None] | None
PATIENCE = 20.0  # seconds that the SuperLink and its apps have to end after SIGTERM


class NotPossible(Exception):
    """The disturbance cannot be carried out now, such as a kill of a process that is gone."""


class Disturber:
    """Carries out the disturbances of one episode.

    Attributes:
        newcomers: Number of clients that joined.
        left: Processes that a SIGTERM of the SuperLink left behind.
    """

    def __init__(self, federation: ChaosFederation, first_newcomer: int) -> None:
        self.federation = federation
        self.next_newcomer = first_newcomer
        self.silent = 0
        self.left: list[str] = []

    def begin(self, one: Disturbance) -> Ending:
        """Begin a disturbance; return the function that ends it after `seconds`, if any.

        Raises:
            NotPossible: If its target is gone, or the machine does not allow it.
        """
        method = getattr(self, one.kind.replace("-", "_"))
        return method(one)

    # --- Clients ---------------------------------------------------------------------------

    def client_kill(self, one: Disturbance) -> Ending:
        """Kill a SuperNode with all its children; start it again later."""
        self._pid(client_process(one.target))
        self.federation.kill(client_process(one.target))
        return lambda: self.federation.start_client(one.target)

    def client_term(self, one: Disturbance) -> Ending:
        """Ask a SuperNode to end; start it again later."""
        pid = self._pid(client_process(one.target))
        self.federation.signal(pid, signal.SIGTERM)
        return lambda: self._restart(one.target)

    def client_stop(self, one: Disturbance) -> Ending:
        """Stop a SuperNode and its apps for a while."""
        return self._stop(self._pid(client_process(one.target)))

    def client_leave(self, one: Disturbance) -> Ending:
        """Let a client leave for good."""
        name = client_process(one.target)
        self.federation.signal(self._pid(name), signal.SIGINT)
        return None

    def client_join(self, one: Disturbance) -> Ending:
        """Let a new client join."""
        self.federation.start_client(self._newcomer())
        return None

    def client_skewed(self, one: Disturbance) -> Ending:
        """Let a new client join whose clock is wrong."""
        if not FAKETIME.exists():
            raise NotPossible(f"{FAKETIME} is not installed")
        self.federation.start_client(self._newcomer(), one.skew)
        return None

    def silent_nodes(self, one: Disturbance) -> Ending:
        """Let nodes connect that never answer."""
        self.silent += 1
        self.federation.start_silent_nodes(f"silent-{self.silent}", 3)
        return None

    # --- ServerApp -------------------------------------------------------------------------

    def server_kill(self, one: Disturbance) -> Ending:
        """Kill the ServerApp."""
        self.federation.signal(self._server_app(), signal.SIGKILL)
        return None

    def server_term(self, one: Disturbance) -> Ending:
        """Ask the ServerApp to end."""
        self.federation.signal(self._server_app(), signal.SIGTERM)
        return None

    def server_stop(self, one: Disturbance) -> Ending:
        """Stop the ServerApp for a while."""
        return self._stop(self._server_app())

    # --- SuperLink -------------------------------------------------------------------------

    def link_kill(self, one: Disturbance) -> Ending:
        """Kill the SuperLink and its children, as a power cut does; start it again later."""
        self._pid("superlink")
        self.federation.kill("superlink")
        return self.federation.start_link

    def link_term(self, one: Disturbance) -> Ending:
        """Ask the SuperLink to end; start it again later, whatever it left behind."""
        self.federation.signal(self._pid("superlink"), signal.SIGTERM)
        return self._restart_link

    def link_stop(self, one: Disturbance) -> Ending:
        """Stop the SuperLink for a while."""
        return self._stop(self._pid("superlink"))

    link_stop_long = link_stop

    # --- Disk ------------------------------------------------------------------------------

    def folder_full(self, one: Disturbance) -> Ending:
        """Fill the disk of the run folder; make room later."""
        self._need_disk()
        self.federation.fill_disk()
        return self.federation.free_disk

    def folder_read_only(self, one: Disturbance) -> Ending:
        """Make the disk of the run folder read-only; writable later."""
        self._need_disk()
        if not self.federation.remount("ro"):
            raise NotPossible("somebody writes to the disk just now")
        return self._make_writable

    # --- Helpers ---------------------------------------------------------------------------

    def _make_writable(self) -> None:
        self.federation.remount("rw")

    def _need_disk(self) -> None:
        if not self.federation.has_own_disk:
            raise NotPossible("only root may mount a small disk")

    def _pid(self, name: str) -> int:
        process = self.federation.processes.get(name)
        if process is None or process.poll() is not None:
            raise NotPossible(f"{name} is gone")
        return process.pid

    def _server_app(self) -> int:
        pids = self.federation.server_apps()
        if not pids:
            raise NotPossible("no ServerApp runs")
        return pids[-1]

    def _stop(self, pid: int) -> Ending:
        self.federation.signal(pid, signal.SIGSTOP)
        return lambda: self.federation.signal(pid, signal.SIGCONT)

    def _restart(self, client: str) -> None:
        """Start a client again, after ending what a SIGTERM did not end."""
        if client_process(client) in self.federation.processes:
            self.federation.kill(client_process(client))
        self.federation.start_client(client)

    def _restart_link(self) -> None:
        process = self.federation.processes["superlink"]
        end = monotonic() + PATIENCE
        while (process.poll() is None or self.federation.orphans()) and monotonic() < end:
            sleep(0.2)
        if process.poll() is None:
            self.left.append("the SuperLink after SIGTERM")
        self.left += self.federation.orphans()

        self.federation.kill("superlink")
        for pid in self.federation.server_apps():
            self.federation.signal(pid, signal.SIGKILL)
        self.federation.start_link()

    def _newcomer(self) -> str:
        newcomer = str(self.next_newcomer)
        self.next_newcomer += 1
        return newcomer
