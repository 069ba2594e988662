"""What this package uses of other packages' private parts is there as it is used: an upgrade that changes it fails here."""

import ast
import importlib
import inspect
from datetime import timedelta
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from ray import tune
from ray.air.execution import FixedResourceManager
from ray.air.execution._internal import RayActorManager
from ray.train._internal.session import _TrainingResult
from ray.tune.execution.tune_controller import TuneController
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from sb3_contrib import ARS
from stable_baselines3 import PPO, SAC, HerReplayBuffer
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, EventCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from torch import distributed as dist
from torch.distributions import Distribution

import lit_sb3_ray

PACKAGE = Path(lit_sb3_ray.__file__).parent

METHODS = {
    # Owner, name: the parameters, in order, that the package counts on.
    (BaseAlgorithm, "_setup_learn"): [
        "self",
        "total_timesteps",
        "callback",
        "reset_num_timesteps",
        "tb_log_name",
        "progress_bar",
    ],
    (BaseAlgorithm, "_update_current_progress_remaining"): ["self", "num_timesteps", "total_timesteps"],
    (BaseAlgorithm, "_get_torch_save_params"): ["self"],
    (BaseAlgorithm, "_excluded_save_params"): ["self"],
    (BaseAlgorithm, "_wrap_env"): ["env", "verbose", "monitor_wrapper"],
    (ARS, "_do_one_update"): ["self", "callback", "async_eval"],
    (EventCallback, "_on_event"): ["self"],
    (BaseCallback, "_init_callback"): ["self"],
    (BaseCallback, "_on_training_start"): ["self"],
    (BaseCallback, "_on_rollout_start"): ["self"],
    (BaseCallback, "_on_step"): ["self"],
    (VecEnv, "_get_indices"): ["self", "indices"],
    (VecEnv, "_reset_options"): ["self"],
    (VecEnv, "_reset_seeds"): ["self"],
    (Distribution, "set_default_validate_args"): ["value"],
}
INSTANCE_NAMES = {
    "_Options": "ProcessGroupGloo",
    "_actor_manager": "TuneController",
    "_current_ep_start": "HerReplayBuffer",
    "_devices": "ProcessGroupGloo.Options",
    "_every_n_train_steps": "ModelCheckpoint",
    "_execution_engine": "Variable",
    "_foreach_norm": "torch",
    "_last_episode_starts": "algorithm",
    "_last_obs": "algorithm",
    "_last_original_obs": "algorithm",
    "_last_result": "Trainable",
    "_live_actors_to_ray_actors_resources": "RayActorManager",
    "_n_updates": "algorithm",
    "_seeds": "VecEnv",
    "_optimizer_step_post_hooks": "Optimizer",
    "_optimizer_step_pre_hooks": "Optimizer",
    "_options": "VecEnv",
    "_signal_connector": "Trainer",
    "_storage": "Trainable",
    "_timeout": "ProcessGroupGloo.Options",
    "_train_time_interval": "ModelCheckpoint",
    "_Unpickler": "pickle",
    "_validate_args": "Distribution",
}


IMPORTS = {
    # Private, or of a private module: the parameters, in order, that the package counts on; None for what is not called.
    "ray._private.ray_constants.DEBUG_AUTOSCALING_STATUS": None,
    "ray._private.resource_and_label_spec.ResourceAndLabelSpec": ["num_cpus", "num_gpus"],
    "ray._private.services.find_bootstrap_address": ["temp_dir"],
    "ray._private.services.find_node_ids": [],
    "ray._private.services.get_ray_address_from_environment": ["addr", "temp_dir"],
    "ray._private.state.available_resources_per_node": [],
    "ray.experimental.internal_kv._internal_kv_get": ["key"],
    "ray.train._internal.session._TrainingResult": ["checkpoint", "metrics"],
    "stable_baselines3.common.vec_env.patch_gym._patch_env": ["env"],
}
KEYWORDS = {
    "_init_setup_model": PPO,
    "_spill_on_unavailable": NodeAffinitySchedulingStrategy,
}


@pytest.fixture(scope="module")
def her():
    """A HER buffer of ten rows, with what it needs."""
    line = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    space = gym.spaces.Dict({"observation": line, "achieved_goal": line, "desired_goal": line})
    env = DummyVecEnv([lambda: GoalEnv(space, line)])
    return HerReplayBuffer(10, space, line, env)


class GoalEnv(gym.Env):
    def __init__(self, observation_space, action_space):
        self.observation_space = observation_space
        self.action_space = action_space

    def compute_reward(self, achieved_goal, desired_goal, info):
        return 0.0


def private_attributes():
    """Private attributes that the package reads of anything, and those that it defines or sets itself."""
    used, own = {}, set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                is_self = isinstance(node.value, ast.Name) and node.value.id == "self"
                if isinstance(node.ctx, ast.Store) and is_self:
                    own.add(node.attr)
                else:
                    used.setdefault(node.attr, place)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
    return {name: place for name, place in used.items() if name not in own}


def test_every_private_name_that_is_used_is_looked_after_here():
    known = {name for _, name in METHODS} | set(INSTANCE_NAMES)
    assert {name: place for name, place in private_attributes().items() if name not in known} == {}


def is_private(name):
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def private_imports_and_keywords():
    """What the package imports by private names, and private keywords of what it calls."""
    imports, keywords = set(), set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] != PACKAGE.name:
                imports |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imports |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Call):
                keywords |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    return set(filter(is_private, imports)), set(filter(is_private, keywords))


def test_every_private_import_and_keyword_is_looked_after_here():
    assert private_imports_and_keywords() == (set(IMPORTS), set(KEYWORDS))


@pytest.mark.parametrize("path", IMPORTS)
def test_what_is_imported_by_a_private_name_is_there(path):
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    if IMPORTS[path] is not None:
        assert list(inspect.signature(found).parameters)[: len(IMPORTS[path])] == IMPORTS[path]


@pytest.mark.parametrize("name", KEYWORDS)
def test_private_keywords_are_taken(name):
    assert name in inspect.signature(KEYWORDS[name]).parameters


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_method_takes_what_it_is_given(owner, name):
    assert list(inspect.signature(getattr(owner, name)).parameters)[: len(METHODS[owner, name])] == METHODS[owner, name]


def test_algorithm_keeps_its_last_observation_and_its_updates():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8)
    assert model._last_obs is model._last_episode_starts is model._last_original_obs is None
    assert model._n_updates == 0
    assert "_n_updates" in vars(ARS("LinearPolicy", "CartPole-v1"))
    assert "env" in model._excluded_save_params()


def test_a_trainable_keeps_its_storage_and_its_last_result():
    assert {"_storage", "_last_result"} <= set(tune.Trainable.__init__.__code__.co_names)
    assert list(inspect.signature(_TrainingResult).parameters) == ["checkpoint", "metrics"]


@pytest.mark.usefixtures("ray_instance")  # Making a manager starts a Ray where none is.
def test_the_controller_of_a_study_knows_all_its_actors():
    assert "_actor_manager" in TuneController.__init__.__code__.co_names
    manager = RayActorManager(FixedResourceManager({"CPU": 1}))
    assert manager._live_actors_to_ray_actors_resources == {}


def test_an_optimizer_s_step_is_wrapped_once_for_hooks_and_profilers():
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks
    assert type(optimizer).step.hooked
    assert type(optimizer).step.__wrapped__.__name__ == "step"


def test_a_group_of_learners_takes_its_address_and_its_patience():
    options = dist.ProcessGroupGloo._Options()
    options._timeout = timedelta(seconds=7)
    options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, options)
    values = torch.ones(2)
    group.allreduce([values], dist.AllreduceOptions()).wait()
    assert (group.size(), values.tolist(), options._timeout) == (1, [1.0, 1.0], timedelta(seconds=7))


def test_a_backward_pass_calls_back_once_at_its_end():
    weight, called = torch.ones(3, requires_grad=True), []
    engine = torch.autograd.Variable._execution_engine
    weight.register_post_accumulate_grad_hook(lambda _: engine.queue_callback(lambda: called.append(weight.grad.tolist())))
    (2 * weight).sum().backward()
    assert called == [[2.0, 2.0, 2.0]]


def test_networks_and_loose_tensors_are_told_apart():
    state_dicts, variables = SAC("MlpPolicy", "Pendulum-v1", buffer_size=10)._get_torch_save_params()
    assert {"policy", "actor.optimizer", "critic.optimizer", "ent_coef_optimizer"} <= set(state_dicts)
    assert variables == ["log_ent_coef"]


def test_rollouts_take_what_learn_gives_them():
    on_policy = ["self", "env", "callback", "rollout_buffer", "n_rollout_steps"]
    assert list(inspect.signature(OnPolicyAlgorithm.collect_rollouts).parameters) == on_policy
    taken = set(inspect.signature(OffPolicyAlgorithm.collect_rollouts).parameters)
    options = {"train_freq", "action_noise", "callback", "learning_starts", "replay_buffer", "log_interval"}
    assert options <= taken


def test_replay_buffers_have_the_parts_that_are_saved(her):
    assert {"_current_ep_start", "ep_start", "ep_length", "pos", "full"} <= set(vars(her))
    assert callable(her.truncate_last_trajectory)
    line = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert {"dones", "timeouts", "pos", "full", "optimize_memory_usage"} <= set(vars(ReplayBuffer(10, line, line)))


def test_vec_envs_keep_seeds_and_options_for_the_next_reset():
    env = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    env.seed(3)
    assert env._seeds == [3]
    assert env._options == [{}]
    env._reset_seeds()
    assert env._seeds == [None]


def test_logger_holds_what_was_recorded():
    logger = Logger(None, [])
    logger.record("train/loss", 1.0, exclude="csv")
    assert (logger.name_to_value["train/loss"], logger.name_to_excluded["train/loss"]) == (1.0, ("csv",))
    logger.record_mean("train/mean", 1.0)
    assert logger.name_to_count["train/mean"] == 1


def test_evaluation_callback_keeps_the_scores():
    callback = EvalCallback(DummyVecEnv([lambda: gym.make("CartPole-v1")]), warn=False)
    assert {"best_mean_reward", "last_mean_reward", "callback_on_new_best", "eval_env"} <= set(vars(callback))


def test_distributions_have_one_switch_for_their_checks():
    before = Distribution._validate_args
    try:
        Distribution.set_default_validate_args(not before)
        assert Distribution._validate_args is not before
    finally:
        Distribution.set_default_validate_args(before)


def test_norms_of_many_tensors_are_computed_at_once():
    norms = torch._foreach_norm([torch.ones(4), torch.zeros(2)])
    assert [float(norm) for norm in norms] == [2.0, 0.0]


def test_lightning_notes_a_sigterm_and_tells_when_a_model_checkpoint_saves():
    trainer = pl.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu", enable_progress_bar=False)
    assert trainer._signal_connector.received_sigterm is False
    checkpoint = pl.callbacks.ModelCheckpoint(every_n_train_steps=7)
    assert (checkpoint._every_n_train_steps, checkpoint._train_time_interval) == (7, None)
