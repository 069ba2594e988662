"""What a user has of their own: an env that trains so far until a file is there, a policy, an extractor and a callback.

What a study has done when it is stopped, and which trials are at work when a node dies, does not hang on who is faster then.
"""

import yaml

# Each training env has done 256 steps at the first evaluation and at the next one, at which it begins anew where it was lost.
HELD_AT = 300
MODULE = f"""
import socket
import time
from pathlib import Path

import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor

GATE = Path({{gate!r}})


class GatedEnv(CartPoleEnv):
    count = 0

    def step(self, action):
        self.count += 1
        while self.count > {HELD_AT} and not GATE.exists():
            time.sleep(0.02)
        return super().step(action)


class Extractor(FlattenExtractor):
    pass


class Policy(ActorCriticPolicy):
    pass


class Callback(BaseCallback):
    def _on_training_start(self):
        assert isinstance(self.model.policy, Policy) and isinstance(self.model.policy.features_extractor, Extractor)
        GATE.with_name("called_on_" + socket.gethostname()).touch()

    def _on_step(self):
        return True


gymnasium.register("Mine-v0", entry_point="my_envs:GatedEnv", max_episode_steps=100)
"""
ENTRY = {
    "n_envs": 8,
    "n_timesteps": 8192,
    "policy": "my_envs.Policy",
    "callback": "my_envs.Callback",
    "n_steps": 32,
    "batch_size": 256,
}
MARKS = [2048, 4096, 6144, 8192]
OWN_NETWORK = "policy_kwargs:dict(net_arch=[8, 8], features_extractor_class=my_envs.Extractor)"


def write_env(folder, gate):
    """Writes the module, my_envs.py, and the env's entry, mine.yml, into a new folder.

    Args:
        folder: The folder.
        gate: The file that the env waits for.
    """
    folder.mkdir()
    (folder / "my_envs.py").write_text(MODULE.format(gate=str(gate)))
    (folder / "mine.yml").write_text(yaml.safe_dump({"Mine-v0": ENTRY}))
