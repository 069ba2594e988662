"""The bar of commands that play: one, above which stands whatever is printed."""

import re
import sys

import pytest
from terminals import run_on_terminal

from lit_sb3_ray.cli.output import with_bar

PROGRAM = """
import logging, sys, time
from lit_sb3_ray.cli.output import set_up_logging, with_bar
set_up_logging(1)
before = sys.stdout, sys.stderr
try:
    for step in with_bar(iter(range(40)), 40):
        time.sleep(0.02)
        if step % 10 == 9:
            print("episode", step)
            logging.getLogger("lit_sb3_ray").info("told %d", step)
        if step == int(sys.argv[1]):
            raise KeyboardInterrupt
except KeyboardInterrupt:
    print("stopped")
assert (sys.stdout, sys.stderr) == before
print("end")
"""


@pytest.mark.parametrize("stop", [29, 99])
def test_what_is_printed_stands_above_the_one_bar(stop, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    code, lines = run_on_terminal(["program.py", str(stop)], tmp_path)
    assert code == 0, lines
    lines = [line for line in lines if line]
    steps = range(9, min(stop, 39) + 1, 10)
    printed = [f"{text} {step}" for step in steps for text in ("episode", "told")]
    assert lines[: len(printed)] == printed
    (bar,) = [line for line in lines if "%|" in line]
    assert re.search(r"100%\|█+\| 40/40" if stop == 99 else r"7\d%\|█+.*\| (29|30)/40", bar)
    assert lines[len(printed) + 1 :] == (["end"] if stop == 99 else ["stopped", "end"])


def test_elsewhere_nothing_is_redirected(capsys):
    streams = sys.stdout, sys.stderr
    for step in with_bar(range(3), 3):
        print("step", step)
        assert (sys.stdout, sys.stderr) == streams
    captured = capsys.readouterr()
    assert captured.out == "step 0\nstep 1\nstep 2\n"
    assert "3/3" in captured.err
