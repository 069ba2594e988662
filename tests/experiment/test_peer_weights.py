"""`lit-sb3-ray train` leaves the weights that rl_zoo3 leaves for the same command, bit for bit.

Each side takes the figures of its own packaged files. The peer runs in a process of its own, because importing it changes
gymnasium's TimeLimit; ours does too, so that both start alike.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3.common.save_util import load_from_zip_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
ROOT = Path(__file__).parents[2]
SAME = ["--seed", "7", "--num-threads", "1", "--device", "cpu", "--eval-freq", "-1", "--verbose", "0"]
# Many runs in one process, since starting one costs more than most of the runs.
OURS = """
import json, sys
from lit_sb3_ray.cli.main import main
for words in json.load(open(sys.argv[1])):
    if code := main(["train", *words]):
        sys.exit(code)
"""
PEER = """
import json, sys
from rl_zoo3.train import train
for words in json.load(open(sys.argv[1])):
    sys.argv = ["train", *words]
    train()
"""
# A goal for the tiny environment, in the peer's format, read by both.
HINDSIGHT = """
TinyGoal-v0:
  n_timesteps: 1e3
  policy: 'MultiInputPolicy'
  normalize: "{'norm_obs': True, 'norm_reward': False}"
  learning_rate: lin_1e-3
  learning_starts: 50
  batch_size: 32
  buffer_size: 100
  train_freq: [2, "episode"]
  gradient_steps: -1
  gamma: 0.95
  noise_type: 'normal'
  noise_std: 0.1
  replay_buffer_class: HerReplayBuffer
  replay_buffer_kwargs: "dict(goal_selection_strategy='future', n_sampled_goal=4)"
  policy_kwargs: "dict(net_arch=[16, 16], n_critics=1, activation_fn=nn.Tanh)"
"""


@dataclass(frozen=True)
class Case:
    algo: str
    env_id: str
    steps: int
    words: tuple[str, ...] = ()
    start: str = ""

    def command(self, side: str) -> list[str]:
        words = [*self.words, "-i", str(CASES[self.start].model(side))] if self.start else self.words
        folder = str(self.folder(side))
        return ["--algo", self.algo, "--env", self.env_id, "-n", str(self.steps), "-f", folder, *SAME, *words]

    def folder(self, side: str) -> Path:
        """Where a side puts this case's runs, relative to where it is started."""
        return Path(f"{side}{list(CASES.values()).index(self)}")

    def model(self, side: str) -> Path:
        return self.folder(side) / self.algo / f"{self.env_id}_1" / f"{self.env_id}.zip"


def params(*assignments: str) -> tuple[str, ...]:
    return ("-params", *assignments)


WRAPPERS = "[{'rl_zoo3.wrappers.FrameSkip': {'skip': 2}}, {'rl_zoo3.wrappers.HistoryWrapper': {'horizon': 2}}, %s]"
TIME_FEATURE = "{'rl_zoo3.wrappers.TimeFeatureWrapper': {'max_steps': 100}}"
CASES = {
    "a2c, normalize, schedule, gSDE": Case("a2c", "Pendulum-v1", 192),
    "a2c": Case("a2c", "CartPole-v1", 200),
    "a2c, Atari": Case("a2c", "PongNoFrameskip-v4", 32, params("n_envs:2")),
    "ars": Case("ars", "CartPole-v1", 200),
    "ars, normalize": Case("ars", "MountainCar-v0", 3300),
    "crossq": Case("crossq", "Pendulum-v1", 130),
    "ddpg, noise": Case("ddpg", "Pendulum-v1", 150, params("learning_starts:100")),
    "dqn": Case("dqn", "CartPole-v1", 768, params("learning_starts:200")),
    "dqn, as many gradient steps": Case("dqn", "Acrobot-v1", 200, ("--save-replay-buffer",)),
    "ppo, schedules": Case("ppo", "CartPole-v1", 600),
    "ppo, normalize, gSDE": Case("ppo", "MountainCarContinuous-v0", 64),
    "ppo, image wrappers": Case("ppo", "CarRacing-v3", 16, params("n_envs:2", "n_steps:4", "n_epochs:2", "batch_size:4")),
    "ppo, MuJoCo": Case("ppo", "Walker2d-v4", 64, params("n_steps:32", "n_epochs:2")),
    "ppo, MiniGrid": Case("ppo", "MiniGrid-Empty-Random-5x5-v0", 128, params("n_steps:8")),
    "ppo_lstm, normalize, schedules, masked velocities": Case("ppo_lstm", "CartPoleNoVel-v1", 512, params("n_epochs:3")),
    "qrdqn": Case("qrdqn", "CartPole-v1", 512, params("learning_starts:200")),
    "sac, gSDE": Case("sac", "MountainCarContinuous-v0", 96),
    "sac, schedule": Case("sac", "LunarLanderContinuous-v3", 150, params("learning_starts:100")),
    "sac, wrappers": Case(
        "sac", "Pendulum-v1", 150, (*params("learning_starts:60", "batch_size:32"), f"env_wrapper:{WRAPPERS % TIME_FEATURE}")
    ),
    "sac, env's arguments": Case("sac", "Pendulum-v1", 130, ("--env-kwargs", "g:5.0")),
    "td3, Ornstein-Uhlenbeck noise": Case("td3", "MountainCarContinuous-v0", 140),
    "td3, noise": Case("td3", "Pendulum-v1", 150, params("learning_starts:100")),
    "tqc, gSDE": Case("tqc", "MountainCarContinuous-v0", 96),
    "tqc, HER, noise, episodes, a file of the user's": Case(
        "tqc", "TinyGoal-v0", 140, ("--gym-packages", "tiny_envs", "-conf", "her_tiny.yml")
    ),
    "td3, default entry": Case("td3", "TinyCount-v0", 130, ("--gym-packages", "tiny_envs")),
    "trpo": Case("trpo", "CartPole-v1", 2048),
    "trpo, normalize, gSDE": Case("trpo", "MountainCarContinuous-v0", 256, params("n_steps:64")),
    # Warm starts, which follow what they start from: weights, statistics, replay buffer.
    "ppo, warm start": Case("ppo", "MountainCarContinuous-v0", 64, start="ppo, normalize, gSDE"),
    "dqn, warm start": Case("dqn", "Acrobot-v1", 100, start="dqn, as many gradient steps"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Where both sides have put their runs; they train at the same time."""
    root = tmp_path_factory.mktemp("runs")
    (root / "her_tiny.yml").write_text(HINDSIGHT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    sides, running = {"ours": OURS, "peer": PEER}, {}
    for side, code in sides.items():
        plan = root / f"{side}.json"
        plan.write_text(json.dumps([case.command(side) for case in CASES.values()]))
        with (root / f"{side}.txt").open("w") as output:
            running[side] = subprocess.Popen(
                [sys.executable, "-c", code, str(plan)], cwd=root, env=environment, stdout=output, stderr=output
            )
    for side, process in running.items():
        code = process.wait()
        assert code == 0, f"{side}: exit code {code}\n{(root / f'{side}.txt').read_text()[-3000:]}"
    return root


def exact(value):
    """Tensors, arrays and floats as their bytes."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    return value


def left_by(model: Path):
    """Weights, optimizers, loose tensors, counters and running statistics of a run."""
    # The rest of its data is pickled and would import the peer.
    _, parameters, variables = load_from_zip_file(model, load_data=False, device="cpu")
    with zipfile.ZipFile(model) as file:
        data = json.loads(file.read("data"))
    counters = {
        name: value for name, value in data.items() if name in ("num_timesteps", "_n_updates", "_episode_num", "n_envs")
    }
    statistics = model.with_suffix("") / "vecnormalize.pkl"
    saved = pickle.loads(statistics.read_bytes()) if statistics.exists() else None
    names = () if saved is None else ("obs_rms", "ret_rms", "gamma", "norm_obs", "norm_reward", "clip_obs", "clip_reward")
    found = {name: plain_statistics(vars(saved).get(name)) for name in names}
    return exact({"parameters": parameters, "variables": variables, "counters": counters, "statistics": found})


def plain_statistics(value):
    if isinstance(value, dict):
        return {key: plain_statistics(item) for key, item in value.items()}
    return vars(value) if hasattr(value, "mean") else value


def test_every_algorithm_of_the_peer_is_among_the_cases():
    from lit_sb3_ray.config.algorithms import ALGOS

    assert {case.algo for case in CASES.values()} == set(ALGOS) - {"ppo_mask"}


@pytest.mark.parametrize("name", CASES)
def test_same_command_same_weights(root, name):
    case = CASES[name]
    ours, theirs = left_by(root / case.model("ours")), left_by(root / case.model("peer"))
    assert ours.keys() == theirs.keys()
    assert theirs["counters"]["num_timesteps"] >= case.steps
    assert theirs["counters"]["_n_updates"] > 0
    assert ours["counters"] == theirs["counters"]
    assert ours["statistics"] == theirs["statistics"]
    assert ours["variables"] == theirs["variables"]
    assert ours["parameters"].keys() == theirs["parameters"].keys()
    for part, tensors in theirs["parameters"].items():
        assert [name for name in tensors if ours["parameters"][part][name] != tensors[name]] == [], part
