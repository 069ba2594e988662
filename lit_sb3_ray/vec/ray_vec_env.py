"""A vectorised environment whose members live in Ray actors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn
from stable_baselines3.common.vec_env.util import dict_to_obs

from lit_sb3_ray.vec.batch import DONE_BIT, TERMINAL_BIT, TRUNCATED_BIT
from lit_sb3_ray.vec.crew import Crew
from lit_sb3_ray.vec.group import TERMINAL, TRUNCATED, Command
from lit_sb3_ray.vec.grouping import EnvsPerActor, Grouping
from lit_sb3_ray.vec.masks import METHOD
from lit_sb3_ray.vec.planning import start_fleet
from lit_sb3_ray.vec.sending import EnvFn

RESTARTED = "env_restarted"


class RayVecEnv(VecEnv):
    """Environments in Ray actors, with the contract of SB3's `DummyVecEnv`.

    Usable wherever SB3 takes a VecEnv class: `make_vec_env("CartPole-v1", 8, vec_env_cls=RayVecEnv)`. Observations, actions,
    rewards and dones of actors on this node travel through shared memory; actors on other nodes are called once a step.

    An actor that dies or hangs is replaced. Its environments are reset with new seeds, and their episodes end as truncated:
    reward 0, the last observation before the loss as `terminal_observation`, and `info["env_restarted"]`. An environment's own
    exception ends everything.

    Args:
        env_fns: Functions that build one environment each.
        envs_per_actor: How many environments an actor steps at most; `"auto"` makes as many shares as there are processors and
            keeps one of them in this process, unless there is a `step_timeout`.
        num_cpus_per_actor: CPUs that Ray reserves for each actor; None takes an equal share of the free ones, one at most.
        step_timeout: Seconds after which an actor that has not answered is replaced; None waits for ever.
        max_restarts: How often each actor may be replaced.
        transport: `"auto"`, `"shared"` (this node only) or `"calls"`.
        grouping: How the environments are split, from somebody who has planned that; it goes over `envs_per_actor`.
        placement: Nodes of the actors: `"strict-pack"` (this one), `"pack"` (as few as hold them, this one first) or
            `"spread"`; None is `"pack"`. In a placement group its own strategy holds.

    Raises:
        ConfigError: An argument is wrong, an environment cannot be sent, or Ray can never have the CPUs; or an environment's
            constructor has found bad input.
        EnvError: An environment cannot be built; raised later by the method at work when one fails in a step or a reset.
            Everything is closed by then.
        ActorError: An actor cannot be started; raised later when one was lost too often. Everything is closed by then.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        envs_per_actor: EnvsPerActor = "auto",
        num_cpus_per_actor: float | None = None,
        step_timeout: float | None = None,
        max_restarts: int = 3,
        transport: str = "auto",
        grouping: Grouping | None = None,
        placement: str | None = None,
    ) -> None:
        self._last: Any = None  # what the last step or reset has returned
        self._is_stepping = False
        fleet = start_fleet(
            *(env_fns, envs_per_actor, num_cpus_per_actor, step_timeout, max_restarts, transport, grouping, placement)
        )
        self._crew = Crew(fleet, step_timeout)
        try:
            super().__init__(len(env_fns), fleet.description.observation_space, fleet.description.action_space)
        except BaseException:
            self.close()
            raise
        self.metadata = fleet.description.metadata

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seeds the next reset: environment `i` gets `seed + i`; None draws a seed from numpy's global generator."""
        seeds = super().seed(seed)
        self._crew.entropy = seeds[0]
        return seeds

    def step_async(self, actions: np.ndarray[Any, Any]) -> None:
        """Lets the environments start a step; see `VecEnv`."""
        self._crew.begin_step(actions)
        self._is_stepping = True

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step; see `VecEnv`."""
        if not self._is_stepping:
            raise RuntimeError("step_wait was called without step_async")
        extras = self._crew.finish_step()
        self._is_stepping = False
        batch = self._crew.fleet.batch
        rewards, dones, flags = batch.rewards.copy(), batch.dones.copy(), batch.flags.tolist()
        infos: list[dict[str, Any]] = [{TRUNCATED: flag & TRUNCATED_BIT == TRUNCATED_BIT} for flag in flags]
        ended = [row for row, flag in enumerate(flags) if flag & DONE_BIT]
        for row in ended:
            self.reset_infos[row] = {}
        for row, info, reset_info in extras:
            if info is not None:
                infos[row] = info
            if reset_info is not None:
                self.reset_infos[row] = reset_info
        for row in ended:
            if flags[row] & TERMINAL_BIT:
                infos[row][TERMINAL] = self._row(batch.terminal, row)
        if self._crew.revived:
            self._end_lost_episodes(rewards, dones, infos)
        self._last = self._observations()
        return self._last, rewards, dones, infos

    def reset(self) -> VecEnvObs:
        """Resets all environments, with the seeds and options that were set for this reset; see `VecEnv`."""
        self._is_stepping = False
        self.reset_infos = self._crew.reset(list(zip(self._seeds, self._options, strict=True)))
        # Seeds and options are for one reset.
        self._reset_seeds()
        self._reset_options()
        self._last = self._observations()
        return cast("VecEnvObs", self._last)

    def close(self) -> None:
        """Closes the environments and ends their actors; a second call does nothing.

        Raises:
            EnvError: An environment failed in its close; the others are closed nevertheless.
        """
        if self._crew.closed:
            return
        failure = self._crew.close()
        if failure is not None:
            raise failure.error()

    def get_images(self) -> Sequence[np.ndarray[Any, Any] | None]:
        """Renders the environments, if their mode is `rgb_array`."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"images need the render mode 'rgb_array', and the environments have {self.render_mode!r}", stacklevel=2
            )
            return [None] * self.num_envs
        return self._ask(Command.RENDER, None)

    def has_attr(self, attr_name: str) -> bool:
        """Tells whether all environments, or wrappers around them, have an attribute."""
        return all(self._ask(Command.HAS_ATTR, None, attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Gets an attribute of environments or of wrappers around them; from an actor comes a copy."""
        return self._ask(Command.GET_ATTR, indices, attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of environments; those that have to be replaced later get it, too."""
        targets = self._targets(indices)
        self._crew.ask(Command.SET_ATTR, targets, attr_name, value)
        self._crew.remember(targets, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of environments or of wrappers around them; those of different actors run at the same time."""
        if method_name == METHOD and not method_args and not method_kwargs:
            return self._crew.masks(self._targets(indices))
        return self._ask(Command.ENV_METHOD, indices, method_name, method_args, method_kwargs)

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Tells which environments are wrapped by a class."""
        return self._ask(Command.IS_WRAPPED, indices, wrapper_class)

    def _ask(self, command: Command, indices: VecEnvIndices, *arguments: Any) -> list[Any]:
        return self._crew.ask(command, self._targets(indices), *arguments)

    def _targets(self, indices: VecEnvIndices) -> list[int]:
        every = range(self.num_envs)
        return [every[index] for index in self._get_indices(indices)]

    def _end_lost_episodes(
        self, rewards: np.ndarray[Any, Any], dones: np.ndarray[Any, Any], infos: list[dict[str, Any]]
    ) -> None:
        """Ends the episodes of environments whose actor was replaced, as truncated."""
        for number, reset_infos in self._crew.revived.items():
            for row, reset_info in zip(self._crew.fleet.peers[number].rows, reset_infos, strict=True):
                rewards[row], dones[row] = 0.0, True
                last = self._row(self._crew.fleet.batch.observations, row) if self._last is None else _pick(self._last, row)
                infos[row] = {TRUNCATED: True, TERMINAL: last, RESTARTED: True}
                self.reset_infos[row] = reset_info
        self._crew.revived.clear()

    def _observations(self) -> VecEnvObs:
        arrays = self._crew.fleet.batch.observations
        if None in arrays:
            return cast("VecEnvObs", arrays[None].copy())
        return dict_to_obs(self.observation_space, {key: array.copy() for key, array in arrays.items()})

    def _row(self, arrays: dict[Any, np.ndarray[Any, Any]], row: int) -> VecEnvObs:
        return dict_to_obs(self.observation_space, {key: array[row].copy() for key, array in arrays.items()})


def _pick(observations: VecEnvObs, row: int) -> Any:
    """Takes one environment's part out of observations of all."""
    if isinstance(observations, dict):
        return {key: part[row].copy() for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(part[row].copy() for part in observations)
    return observations[row].copy()
