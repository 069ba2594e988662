"""`lit-sb3-ray <command>`: finds the command, runs it, and turns bad input into one line and exit code 2."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from lit_sb3_ray import __version__
from lit_sb3_ray.cli.stopping import Terminated
from lit_sb3_ray.errors import ConfigError, LearnerError, NonFiniteError, StudyError

PROGRAM = "lit-sb3-ray"
BAD_INPUT = 2


@dataclass(frozen=True)
class Command:
    """A command: the module whose `run(argv)` carries it out, and what the overview says about it."""

    module: str
    summary: str


COMMANDS = {
    "train": Command("lit_sb3_ray.cli.train", "train an agent, evaluate it and save it; continue a run"),
    "tune": Command("lit_sb3_ray.cli.tune", "search hyperparameters: many trials at once on Ray"),
    "sweep": Command("lit_sb3_ray.cli.sweep", "train algorithms, environments and seeds in every combination, and compare"),
    "enjoy": Command("lit_sb3_ray.cli.enjoy", "play a trained agent and report its episodes"),
    "plot-train": Command("lit_sb3_ray.cli.plot_train", "draw training curves of runs"),
    "all-plots": Command("lit_sb3_ray.cli.all_plots", "compare the evaluations of many runs: curves, table, results file"),
    "plot-from-file": Command("lit_sb3_ray.cli.plot_from_file", "draw results of all-plots: bars, boxes, aggregates, tables"),
    "record-video": Command("lit_sb3_ray.cli.record_video", "record a trained agent as mp4, and as gif"),
    "record-training": Command("lit_sb3_ray.cli.record_training", "record all models of a run, and join them in one video"),
    "benchmark": Command("lit_sb3_ray.cli.benchmark", "play every run under a folder; a table beside published figures"),
    "push-to-hub": Command("lit_sb3_ray.cli.push_to_hub", "share a trained agent on the Hugging Face Hub"),
    "load-from-hub": Command("lit_sb3_ray.cli.load_from_hub", "download a trained agent from the Hugging Face Hub"),
    "status": Command("lit_sb3_ray.cli.status", "tell where a study stands, running or not"),
    "stop": Command("lit_sb3_ray.cli.stop", "end a running study in good order"),
    "best": Command("lit_sb3_ray.cli.best", "print or save the hyperparameters of a study's best trials"),
    "report": Command("lit_sb3_ray.cli.report", "write the reports of a study: page, figures, best.yml, table"),
}


def usage() -> str:
    """Builds the overview that `lit-sb3-ray --help` shows."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {PROGRAM} [--help] [--version] <command> ...",
            "",
            "Train, tune and replay Stable-Baselines3 agents.",
            "",
            "commands:",
            *lines,
            "",
            f"`{PROGRAM} <command> --help` lists a command's flags.",
        ]
    )


def find_command(word: str) -> Command:
    """Looks a command up; underscores may stand for hyphens.

    Args:
        word: The command as typed.

    Returns:
        The command.

    Raises:
        ConfigError: There is no such command; the nearest one is named.
    """
    name = word.replace("_", "-")
    if name in COMMANDS:
        return COMMANDS[name]
    known = ", ".join(COMMANDS)
    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the commands are {known}"
    raise ConfigError(f"unknown command {word!r}: {hint}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: The words after the program's name; None takes those of this process.

    Returns:
        The exit code: 0 done, 2 bad input, 1 when training has diverged or a learner or a study is lost, 128 + the signal's
        number when a signal ended the command. Errors that are not the user's propagate, so that Python shows their traceback
        and exits with 1.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(usage(), file=sys.stderr)
        return BAD_INPUT
    # A console script, unlike `python -m`, does not see the user's own modules in the folder it is started from.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        if words[0] in ("-h", "--help", "--version"):
            print(f"{PROGRAM} {__version__}" if words[0] == "--version" else usage(), flush=True)
            return 0
        command = find_command(words[0])
        code: int = importlib.import_module(command.module).run(words[1:])
    except ConfigError as error:
        print(f"{PROGRAM}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except (LearnerError, NonFiniteError, StudyError) as error:
        print(f"{PROGRAM}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt as error:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)
    return code
