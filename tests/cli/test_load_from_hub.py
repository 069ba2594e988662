"""`load-from-hub`: its flags, and what is told before the Hub is asked. The download itself is in tests/hub."""

import sys

import pytest

from lit_sb3_ray.cli import main as cli
from lit_sb3_ray.cli.load_from_hub import build_parser
from lit_sb3_ray.errors import ConfigError

NEEDED = ["--algo", "ppo", "--env", "CartPole-v1", "-f", "logs"]


def test_defaults_are_rl_zoo3_s():
    parsed = vars(build_parser().parse_args(NEEDED))
    assert parsed == {
        "algo": "ppo",
        "env": "CartPole-v1",
        "folder": "logs",
        "organization": "sb3",
        "repo_name": None,
        "exp_id": 0,
        "verbose": 1,
        "force": False,
        "revision": None,
        "token": None,
        "trust": False,
    }


@pytest.mark.parametrize("missing", ["--algo", "--env", "-f"])
def test_what_must_be_given(missing):
    place = NEEDED.index(missing)
    with pytest.raises(ConfigError, match="the following arguments are required"):
        build_parser().parse_args(NEEDED[:place] + NEEDED[place + 2 :])


def test_mistakes_are_one_line_and_code_2(tmp_path, capsys):
    assert cli.main(["load-from-hub", *NEEDED, "-orga", "a/b"]) == 2
    assert "a repository is <organization>/<name>" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert cli.main(["load-from-hub", *NEEDED, "-f", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_without_the_extra_it_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for command, more in (("load-from-hub", []), ("push-to-hub", ["-orga", "me", "--exp-id", "-1"])):
        (tmp_path / "ppo").mkdir(exist_ok=True)
        assert cli.main([command, *NEEDED, "-f", str(tmp_path), *more]) == 2
        err = capsys.readouterr().err
        assert "pip install 'lit-sb3-ray[hub]'" in err
        assert len(err.splitlines()) == 1
