"""Learners of one model in processes of their own, which tests let train together and look at."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import QRDQN, TQC, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecNormalize
from training_process import CONTEXT

import tiny_envs  # noqa: F401 (registers envs)
from lit_sb3_ray.errors import LearnerError
from lit_sb3_ray.lit import RLModule, RLTrainer
from lit_sb3_ray.lit.data_parallel import DataParallel
from lit_sb3_ray.lit.exchange import Exchange
from lit_sb3_ray.lit.gradients import GradientAverage
from lit_sb3_ray.lit.meeting import Meeting, open_meeting
from lit_sb3_ray.lit.state import normalize_statistics

CLASSES = {c.__name__: c for c in (A2C, DDPG, DQN, PPO, SAC, TD3, TQC, MaskablePPO, QRDQN, RecurrentPPO)}


@dataclass(frozen=True)
class Case:
    """A training.

    Attributes:
        algo: The algorithm's class.
        env: Id of the env.
        n_envs: Envs of each learner.
        steps: Env steps of all learners.
        options: Arguments of the algorithm.
        normalize: Whether observations and rewards are normalised.
        policy: The policy's name.
        stop_at: Env step at which a callback of the last learner ends the training.
        cut_at: Env step at which the first learner gives the iteration up.
        killed_at: Env step at which the last learner is killed.
    """

    algo: str
    env: str = "CartPole-v1"
    n_envs: int = 2
    steps: int = 256
    options: tuple[tuple[str, Any], ...] = ()
    normalize: bool = False
    policy: str = "MlpPolicy"
    stop_at: int | None = None
    cut_at: int | None = None
    killed_at: int | None = None


class At(BaseCallback):
    """Does something once, at an env step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action, self.done = step, action, False

    def _on_step(self):
        if self.step is None or self.num_timesteps < self.step or self.done:
            return True
        self.done = True
        return self.action() is not False

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def run(case: Case, size: int = 2, seconds: float = 100) -> list[dict[str, Any]]:
    """Trains with several learners; what each has come to."""
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(size):
            own, other = CONTEXT.Pipe()
            process = CONTEXT.Process(target=learn, args=(case, rank, size, other, folder), daemon=True)
            process.start()
            pipes.append(own)
            processes.append(process)
        try:
            port = pipes[0].recv()
            for pipe in pipes[1:]:
                pipe.send(port)
            for process in processes:
                process.join(seconds)
                assert process.exitcode is not None, "a learner waits for ever"
            return [
                pickle.loads(file.read_bytes()) if (file := Path(folder) / str(rank)).exists() else {"died": True}
                for rank in range(size)
            ]
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()


def learn(case: Case, rank: int, size: int, pipe: Any, folder: str) -> None:
    """One learner, in its process."""
    torch.set_num_threads(1)
    if rank == 0:
        store, port = open_meeting("127.0.0.1")
        pipe.send(port)
    else:
        store, port = None, pipe.recv()
    meeting = Meeting(rank, size, "127.0.0.1", port, "127.0.0.1")
    exchange = Exchange(meeting, store)
    try:
        result = gradients(case, exchange) if case.steps == 0 else train(case, exchange, meeting, Path(folder))
    except LearnerError as error:
        result = {"error": str(error)}
    (Path(folder) / str(rank)).write_bytes(pickle.dumps(result))
    pipe.send(None)
    if "error" in result:
        # What hangs in a group would keep its threads.
        os._exit(0)


def gradients(case: Case, exchange: Exchange) -> dict[str, Any]:
    """The gradients of one loss, by this learner alone and averaged over all."""
    model = CLASSES[case.algo](case.policy, make_vec_env(case.env, 1), seed=0, device="cpu")
    average = GradientAverage(model, exchange)
    observations = torch.as_tensor(np.random.default_rng(exchange.rank).normal(size=(16, 4)), dtype=torch.float32)

    def passed() -> np.ndarray:
        model.policy.optimizer.zero_grad()
        values, log_prob, _ = model.policy.evaluate_actions(observations, torch.zeros(16))
        (values.mean() ** 2 - log_prob.mean()).backward()
        return np.concatenate([weight.grad.numpy().ravel() for weight in model.policy.parameters()])

    own = passed()
    with average.averaging():
        averaged = passed()
    average.remove()
    return {"own": own, "averaged": averaged, "alone": passed()}


def train(case: Case, exchange: Exchange, meeting: Meeting, folder: Path) -> dict[str, Any]:
    """Trains; what has come of it."""
    rank, last = exchange.rank, exchange.rank == exchange.size - 1
    env = make_vec_env(case.env, case.n_envs, seed=10 * rank)
    if case.normalize:
        env = VecNormalize(env, gamma=0.99)
    model = CLASSES[case.algo](case.policy, env, seed=rank, device="cpu", **dict(case.options))
    env.seed(100 + case.n_envs * rank)
    model.set_logger(Logger(None, []))
    module = RLModule(model)
    parallel = DataParallel(exchange, module.guard, scratch=None if rank == 0 else folder)
    module.parallel = parallel
    recorded: list[Any] = []
    parallel.record = lambda index, episode: recorded.append((index, episode["r"]))
    if rank > 0:
        exchange.watch(meeting, parallel.call_off)
    module.guard.armed = rank == 0
    callbacks: list[BaseCallback] = []
    if last:
        callbacks.append(At(case.stop_at, lambda: False))
        callbacks.append(At(case.killed_at, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    if rank == 0:

        def cut() -> None:
            module.guard.requested = module.guard.overdue = True

        callbacks.append(At(case.cut_at, cut))
    trainer = RLTrainer(max_steps=case.steps, rl_callback=callbacks, logger=False, log_interval=None)
    trainer.fit(module)
    files = []
    if rank == 0:
        (folder / "collected").mkdir()
        files = [(path.name, path.stat().st_size) for path in parallel.collect(folder / "collected")]
        parallel.dismiss()
    else:
        parallel.wait_for_dismissal(module.session)
    parallel.leave()
    buffer = getattr(model, "replay_buffer", None)
    return {
        "weights": {k: v.numpy() for k, v in model.policy.state_dict().items()},
        "loose": {k: getattr(model, k).detach().numpy() for k in model._get_torch_save_params()[1]},
        "statistics": {k: vars(v) for k, v in normalize_statistics(model).items()},
        "steps": model.num_timesteps,
        "updates": getattr(model, "_n_updates", None),
        "iteration": module.session.iteration,
        "recorded": recorded,
        "episodes": [(e["r"], e["l"]) for e in model.ep_info_buffer],
        "files": files,
        "draws": np.random.random(3).tolist(),
        "buffer": None if buffer is None else (buffer.size(), buffer.actions[:3].tolist()),
        "target_kl": getattr(model, "target_kl", None),
    }
