"""`--async-eval` on the command line: told by a dry run, refused for studies, given anew with `--resume`."""

from __future__ import annotations

import pytest

from lit_sb3_ray.cli.main import main
from lit_sb3_ray.experiment.arguments import resumed_arguments, train_arguments


def test_a_dry_run_tells_of_it_and_starts_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dry-run", "--async-eval", "--eval-freq", "500", "--seed", "1"]) == 0
    assert "5 episodes every 500 env steps, in a Ray actor while training goes on" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_study_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "-optimize", "--async-eval", "--seed", "1"]) == 2
    assert "--async-eval with a study" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("saved", "given", "expected"), [(False, {}, False), (True, {}, True), (False, {"async_eval": True}, True)]
)
def test_a_run_that_goes_on_keeps_it_and_may_turn_it_on(saved, given, expected):
    arguments = resumed_arguments(train_arguments({"async_eval": saved}), {"resume": "run", **given}, "run")
    assert arguments["async_eval"] is expected


def test_ars_takes_the_number_of_its_environments(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dry-run", "--algo", "ars", "--n-envs", "4", "--seed", "1"]) == 0
    assert "training: 4" in capsys.readouterr().out
