"""The flags of `train` against the table they are built to, and against rl_zoo3's own parser."""

import json
import subprocess
import sys

import pytest

from lit_sb3_ray.cli.flags import parse_flags
from lit_sb3_ray.cli.train_parser import build_parser
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.arguments import TRAIN_DEFAULTS, train_arguments

# flags, default
ZOO_FLAGS = [
    (["--algo"], "ppo"),
    (["--env"], "CartPole-v1"),
    (["-tb", "--tensorboard-log"], ""),
    (["-i", "--trained-agent"], ""),
    (["--truncate-last-trajectory"], True),
    (["-n", "--n-timesteps"], -1),
    (["--num-threads"], -1),
    (["--log-interval"], -1),
    (["--eval-freq"], 25000),
    (["--optimization-log-path"], None),
    (["--eval-episodes"], 5),
    (["--n-eval-envs"], 1),
    (["--save-freq"], -1),
    (["--save-replay-buffer"], False),
    (["-f", "--log-folder"], "logs"),
    (["--seed"], -1),
    (["--vec-env"], "auto"),
    (["--device"], "auto"),
    (["--n-trials"], 500),
    (["--max-total-trials"], None),
    (["-optimize", "--optimize-hyperparameters"], False),
    (["--no-optim-plots"], False),
    (["--n-jobs"], None),
    (["--sampler"], "tpe"),
    (["--pruner"], "asha"),
    (["--n-startup-trials"], 10),
    (["--n-evaluations"], None),
    (["--storage"], None),
    (["--study-name"], None),
    (["--trial-id"], None),
    (["--verbose"], 1),
    (["--gym-packages"], []),
    (["--env-kwargs"], None),
    (["--eval-env-kwargs"], None),
    (["-params", "--hyperparams"], None),
    (["-conf", "--conf-file"], None),
    (["-uuid", "--uuid"], False),
    (["--track"], False),
    (["--wandb-project-name"], "sb3"),
    (["--wandb-entity"], None),
    (["--wandb-group"], None),
    (["-tags", "--wandb-tags"], []),
    (["-P", "--progress"], False),
]
OWN_FLAGS = [
    (["--resume"], ""),
    (["--dry-run"], False),
    (["--logger"], None),
    (["--fast"], False),
    (["--precision"], "32-true"),
    (["--profiler"], None),
    (["--keep-checkpoints"], 2),
    (["--log-freq"], -1),
    (["--async-eval"], False),
    (["--n-envs"], None),
    (["--envs-per-actor"], None),
    (["--env-cpus"], None),
    (["--env-timeout"], None),
    (["--max-env-restarts"], 3),
    (["--placement"], None),
    (["--devices"], 1),
    (["--ray-address"], ""),
    (["--ray-num-cpus"], None),
    (["--ray-num-gpus"], None),
    (["--ray-object-store-memory"], None),
    (["--ray-dashboard"], False),
    (["--py-modules"], []),
    (["--working-dir"], ""),
    (["--env-vars"], []),
    (["--max-concurrent"], None),
    (["--scheduler"], "asha"),
    (["--search-space"], None),
    (["--objective"], "last"),
    (["--seeds-per-trial"], 1),
    (["--warm-start"], False),
    (["--cpus-per-trial"], 1.0),
    (["--gpus-per-trial"], 0.0),
    (["--max-failures"], 3),
    (["--checkpoint-every"], 30.0),
    (["--time-budget"], None),
    (["--retrain-best"], 0),
    (["--storage-path"], ""),
    (["--from-study"], None),
]
CHANGED_DEFAULTS = {"--vec-env": "dummy", "--n-jobs": 1, "--pruner": "median"}

DUMP = """
import argparse, json, sys
def dump(parser, *args, **kwargs):
    rows = [[action.option_strings, action.default, str(action.nargs)] for action in parser._actions]
    print("ROWS" + json.dumps(rows))
    sys.exit(0)
argparse.ArgumentParser.parse_args = dump
from rl_zoo3.{module} import {module}
{module}()
"""


def rows_of(parser):
    return {action.option_strings[-1]: (action.option_strings, action.default) for action in parser._actions}


def peer_rows(module):
    done = subprocess.run(
        [sys.executable, "-c", DUMP.format(module=module)], capture_output=True, text=True, check=True, timeout=120
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("ROWS"))
    return {options[-1]: (options, default, nargs) for options, default, nargs in json.loads(line[4:])}


def parse(*words):
    return parse_flags(build_parser(), words, train_arguments())


def test_there_are_43_flags_of_rl_zoo3_in_the_table():
    assert len(ZOO_FLAGS) == 43


def test_every_flag_has_the_table_s_names_and_default():
    found = rows_of(build_parser())
    del found["--help"]
    assert found == {options[-1]: (options, default) for options, default in ZOO_FLAGS + OWN_FLAGS}


def test_destinations_and_defaults_are_those_of_train_arguments():
    values = vars(build_parser().parse_args([]))
    assert values == train_arguments()
    assert set(values) == set(TRAIN_DEFAULTS)


@pytest.mark.slow
def test_the_peer_s_own_parser_has_the_same_43_flags():
    peer = peer_rows("train")
    del peer["--help"]
    assert len(peer) == 43
    ours = rows_of(build_parser())
    for name, (options, default, nargs) in peer.items():
        assert ours[name][0] == options, name
        assert CHANGED_DEFAULTS.get(name, ours[name][1]) == default, name
        assert nargs != "+" or parse(name, "a:1", "b:2").given, name


@pytest.mark.slow
def test_the_peer_s_enjoy_has_the_same_22_flags():
    from lit_sb3_ray.cli.enjoy_parser import build_parser as build_enjoy_parser

    peer = peer_rows("enjoy")
    ours = rows_of(build_enjoy_parser())
    assert len(peer) == 22 + 1
    # Whatever rl_zoo3 downloads, it runs.
    del ours["--trust"]
    assert ours == {name: (options, default) for name, (options, default, _) in peer.items()}


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--optimize"], "optimize_hyperparameters", True),
        (["-optimize"], "optimize_hyperparameters", True),
        (["-c", "file.yml"], "conf_file", "file.yml"),
        (["--eval-f", "100"], "eval_freq", 100),
        (["-n", "5"], "n_timesteps", 5),
        (["--log-interval", "-2"], "log_interval", -2),
        (["-tags", "a", "b"], "wandb_tags", ["a", "b"]),
        (["--logger", "csv", "tensorboard"], "logger", ["csv", "tensorboard"]),
    ],
)
def test_short_forms_and_abbreviations(words, name, value):
    assert getattr(parse(*words).values, name) == value


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], True),
        (["--truncate-last-trajectory"], True),
        (["--truncate-last-trajectory", "True"], True),
        (["--truncate-last-trajectory", "False"], False),
        (["--truncate-last-trajectory", "0"], False),
    ],
)
def test_truncate_last_trajectory_is_a_real_boolean(words, value):
    assert parse(*words).values.truncate_last_trajectory is value


def test_only_flags_that_were_given_count_as_given():
    flags = parse("--seed", "-1", "-P")
    assert flags.given == {"seed": -1, "progress": True}
    assert vars(flags.values) == {**train_arguments(), "progress": True}


def test_key_value_flags_merge_over_repeats_without_inner_quotes():
    flags = parse("-params", "learning_rate:1e-3", "policy:MlpPolicy", "--hyperparams", "learning_rate:0.5", "use_sde:False")
    assert flags.values.hyperparams == {"learning_rate": 0.5, "policy": "MlpPolicy", "use_sde": False}
    assert parse("--env-kwargs", "render_mode:rgb_array").values.env_kwargs == {"render_mode": "rgb_array"}
    assert parse("--env-kwargs", "a:1", "--eval-env-kwargs", "b:x:y").values.eval_env_kwargs == {"b": "x:y"}


def test_parsing_twice_does_not_share_values():
    parse("--env-kwargs", "a:1").values.wandb_tags.append("x")
    assert parse().values.env_kwargs is None
    assert parse().values.wandb_tags == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--eval-freqq", "3"], "did you mean '--eval-freq'"),
        (["-n", "many"], "-n/--n-timesteps"),
        (["--n-envs", "0"], "0 is below 1"),
        (["--n-envs", "two"], "'two' is not a whole number"),
        (["--keep-checkpoints", "-1"], "-1 is below 0"),
        (["--truncate-last-trajectory", "maybe"], "neither true nor false"),
        (["--vec-env", "threads"], "threads"),
        (["--env-kwargs", "novalue"], "--env-kwargs"),
        (["--n-e", "3"], "ambiguous"),
    ],
)
def test_bad_words_are_one_line(words, part):
    with pytest.raises(ConfigError) as error:
        parse(*words)
    assert part in str(error.value)
    assert "\n" not in str(error.value)
