"""`--vec-env ray`: training through envs in Ray actors is the training through envs in this process."""

import os
import subprocess
import sys

import pytest
import torch
from stable_baselines3.common.save_util import load_from_zip_file

WORDS = ["--algo", "ppo", "--env", "CartPole-v1", "-n", "512", "--eval-freq", "300", "--seed", "3", "--num-threads", "1"]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_envs_in_ray_actors_leave_the_same_weights(tmp_path):
    weights, evaluations = {}, {}
    for vec_env in ("dummy", "ray"):
        words = [*WORDS, "--vec-env", vec_env, "-f", str(tmp_path / vec_env), "-params", "n_envs:4", "--verbose", "0"]
        done = subprocess.run(
            [sys.executable, "-m", "lit_sb3_ray", "train", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        )
        assert done.returncode == 0, done.stderr
        run = tmp_path / vec_env / "ppo" / "CartPole-v1_1"
        weights[vec_env] = load_from_zip_file(run / "CartPole-v1.zip")[1]["policy"]
        evaluations[vec_env] = (run / "evaluations.npz").read_bytes()
        assert len(list(run.glob("*.monitor.csv"))) == 4
    assert all(torch.equal(value, weights["ray"][name]) for name, value in weights["dummy"].items())
    assert evaluations["dummy"] == evaluations["ray"]
