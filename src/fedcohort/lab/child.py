"""The process of one shard, which `fedcohort.lab.devices` starts.

It takes its work from a connection, says there how far it is, and ends when its parent does.
"""

import os
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

FAILED = 1


def main() -> None:
    """Do the work that comes over the connection, and send progress, then how it ended."""
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)  # or a child of ours could outlive us unnoticed
    work = connection.recv()
    Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    words = perform(work, lambda *progress: connection.send(("progress", progress)))
    connection.send(("done", words))
    sys.exit(FAILED if words else 0)


def perform(work: Callable[..., object], on_progress: Callable[[str, int, int], None]) -> str:
    """Do the work of a shard; return what went wrong in one line, empty if nothing did.

    The traceback of an error of ours goes to standard error.
    """
    # Imported here: what cannot be imported is an error of the work, too.
    from fedcohort.lab.mistakes import describe_mistake

    try:
        work(on_progress=on_progress)
    except Exception as error:
        words = describe_mistake(error)
        if words is None:
            traceback.print_exc()
            words = f"{type(error).__name__}: {error}"
        return " ".join(words.split()) or type(error).__name__
    return ""


def _end_with_parent(connection: Any) -> None:
    """Wait for the end of the parent, however it ends, and end at once: folders can go on."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(FAILED)


if __name__ == "__main__":
    main()
