r"""Runs a command of lit-sb3-ray on a cluster's head: the one file that `ray submit` uploads.

On your machine, with a cluster's file first, every argument arrives as you typed it:

    python cluster/submit.py cluster/on-prem.yaml tune --algo ppo --env CartPole-v1 --storage-path /shared/logs

`ray submit` joins the arguments with spaces and has a shell on the head read them again, so that quotes are lost. This file
quotes them once more before it calls `ray submit`. Called directly, it takes one quoted line as well as words:

    ray submit cluster/on-prem.yaml cluster/submit.py -- tune --algo ppo --env CartPole-v1
    ray submit cluster/on-prem.yaml cluster/submit.py -- "'tune --env-kwargs \"title:two words\"'"

Options of `ray submit`, such as --tmux or --start, go before the cluster's file.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CLUSTER_FILES = (".yaml", ".yml")
BAD_INPUT = 2


def main(arguments: Sequence[str]) -> int:
    """Uploads this file and runs it on the head or, on the head, runs the command.

    Args:
        arguments: Options of `ray submit`, a cluster's file and a command with its arguments; or the command alone.

    Returns:
        The command's exit code: 2 for bad input.
    """
    first = next((index for index, word in enumerate(arguments) if not word.startswith("-")), None)
    if first is not None and arguments[first].endswith(CLUSTER_FILES):
        return upload(arguments[:first], arguments[first], arguments[first + 1 :])
    if first != 0 and not {"--help", "--version"} & set(arguments):
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    return run(arguments)


def upload(options: Sequence[str], cluster: str, command: Sequence[str]) -> int:
    """Has `ray submit` run a command on a cluster's head.

    Args:
        options: Options of `ray submit`.
        cluster: The cluster's file.
        command: The command and its arguments.

    Returns:
        The exit code of `ray submit`.
    """
    words = command[1:] if command[:1] == ["--"] else command
    ray = shutil.which("ray") or str(Path(sys.executable).with_name("ray"))
    return subprocess.call([ray, "submit", *options, cluster, __file__, "--", *map(shlex.quote, words)])


def run(arguments: Sequence[str]) -> int:
    """Runs a command in the Ray of this machine.

    Args:
        arguments: The command and its arguments, as words or as one line.

    Returns:
        The command's exit code.
    """
    words = shlex.split(arguments[0]) if len(arguments) == 1 else list(arguments)
    # Without these, a command on the head would start a Ray of its own, or be refused by the one that runs.
    os.environ.setdefault("RAY_ADDRESS", "auto")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if os.environ.get("PYTHONWARNINGS") == "ignore":
        # The shell of `ray submit` has set both: what runs in this process itself would have one thread.
        os.environ.pop("OMP_NUM_THREADS", None)
        del os.environ["PYTHONWARNINGS"]
    try:
        from lit_sb3_ray.cli.main import main as command_line
    except ImportError as error:
        print(f"{sys.executable} cannot import lit_sb3_ray ({error}): was this cluster set up by `ray up`?", file=sys.stderr)
        return BAD_INPUT
    return command_line(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
