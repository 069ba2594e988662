"""Runs Python programs one after another, each in a process forked from this one, which has imported what they need.

`python fork_each.py programs.json`: a list of argument lists as `python` takes them, `[path, ...]` or `["-m", module, ...]`.
Standard output and error of program `i` go to `<i>.out` in the working folder. A line `<i> <exit code>` is printed for each
program; the first that fails is the last.
"""

import importlib
import json
import os
import runpy
import sys
import traceback

PRELOADED = (
    "lit_sb3_ray.cli.train",
    "lit_sb3_ray.cli.enjoy",
    "lit_sb3_ray.tuning.study",
    "ray.tune",
    "sb3_contrib",
    "tensorboardX",
)


def run(words):
    """Runs one program here and gives its exit code."""
    try:
        if words[0] == "-m":
            sys.argv = [words[1], *words[2:]]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main(programs):
    for module in PRELOADED:
        importlib.import_module(module)
    sys.path.insert(0, os.getcwd())
    for number, words in enumerate(programs):
        child = os.fork()
        if child == 0:
            output = os.open(f"{number}.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = run(words)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(number, code, flush=True)
        if code != 0:
            return


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(json.load(file))
