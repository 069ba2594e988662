"""`push-to-hub`: its flags, and what is told before the Hub is asked. The push itself is in tests/hub."""

import pytest

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.push_to_hub_parser import build_parser
from lit_sb3_ray.errors import ConfigError

NEEDED = ["--algo", "ppo", "--env", "CartPole-v1", "-f", "logs", "-orga", "me"]


def test_defaults_are_rl_zoo3_s_but_the_repository_is_private():
    parsed = vars(build_parser().parse_args(NEEDED))
    assert parsed == {
        "algo": "ppo",
        "env": "CartPole-v1",
        "folder": "logs",
        "organization": "me",
        "repo_name": None,
        "commit_message": "Initial commit",
        "exp_id": 0,
        "load_best": False,
        "load_checkpoint": None,
        "load_last_checkpoint": False,
        "n_timesteps": 1000,
        "n_envs": 1,
        "num_threads": -1,
        "device": "auto",
        "deterministic": False,
        "stochastic": False,
        "seed": 0,
        "env_kwargs": None,
        "gym_packages": [],
        "no_render": False,
        "verbose": 1,
        "eval_episodes": 10,
        "public": False,
        "token": None,
        "trust": False,
    }


@pytest.mark.parametrize("missing", ["--algo", "--env", "-f", "-orga"])
def test_what_must_be_given(missing):
    place = NEEDED.index(missing)
    with pytest.raises(ConfigError, match="the following arguments are required"):
        build_parser().parse_args(NEEDED[:place] + NEEDED[place + 2 :])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--eval-episodes", "0"], "0 is below 1"),
        (["--seed", "-1"], "--seed -1 is not between"),
        (["--load-best", "--load-checkpoint", "5"], "not allowed with argument"),
        ([], "there is no folder"),
    ],
)
def test_mistakes_are_one_line_and_code_2(tmp_path, capsys, words, part):
    assert cli.main(["push-to-hub", *NEEDED, "-f", str(tmp_path / "none"), *words]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert len(err.splitlines()) == 1
