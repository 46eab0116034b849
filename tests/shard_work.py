"""Work for processes of shards; they import it by name, so it stands in a module of its own."""

import os
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep

SECONDS = 60.0  # the most that anything here takes on a busy machine


def wait_until(condition):
    """Look at a condition until it holds; fail if it never does."""
    end = monotonic() + SECONDS
    while not condition():
        assert monotonic() < end, "the condition never held"
        sleep(0.01)


def start(words, **options):
    """Start a process that Ctrl-C ends, also where our own parent ignores that signal."""

    def listen():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipe = subprocess.PIPE
    return subprocess.Popen(words, stderr=pipe, text=True, preexec_fn=listen, **options)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    """Return the processes that a process started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(path.parent.name))
    return sorted(found)


def hang(pid_file, on_progress):
    """Say who one is, and never end."""
    draft = pid_file.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.replace(pid_file)
    while True:
        signal.pause()


def append(path, word, on_progress):
    on_progress("words", 1, 2)
    with path.open("a") as file:
        file.write(f"{word}\n")


def fail(after, error, on_progress):
    """Raise an error when a file is there."""
    wait_until(after.exists)
    raise error


def lack_memory(on_progress):
    import torch

    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


def be_killed(on_progress):
    print("about to train", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
