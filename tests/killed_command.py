"""A command that is killed a moment after its next checkpoint.

    python killed_command.py SECONDS COMMAND...

Waiting for the checkpoint in another process would take a run that lasts for many seconds.
"""

import os
import signal
import subprocess
import sys
from threading import Timer

from fedcohort import cli
from fedcohort.lab import folder as run_folder

LATEST = 0.02  # seconds after a checkpoint; a run of the tests has several rounds left by then


def kill_after_the_next_checkpoint(words, folder, seconds=LATEST / 2):
    """Run a command in a process that is killed; return the checkpoint that is left."""
    arguments = [sys.executable, __file__, str(seconds), *words]
    done = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return run_folder.load_checkpoint(folder)


def main():
    """Run the command of the arguments, and kill this process when it may expect it least."""
    seconds = float(sys.argv[1])
    save_checkpoint = run_folder.save_checkpoint

    def save(folder, state):
        save_checkpoint(folder, state)
        if state["round"] > 0:
            Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()

    run_folder.save_checkpoint = save
    sys.argv = ["fedcohort", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
