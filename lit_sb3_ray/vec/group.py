"""The environments of one share: stepped one after another, results written into their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import gymnasium as gym
import numpy as np

from lit_sb3_ray.vec.batch import DONE_BIT, TERMINAL_BIT, TRUNCATED_BIT, Batch
from lit_sb3_ray.vec.failures import EnvFailure
from lit_sb3_ray.vec.masks import METHOD, write_mask

# What does not fit the arrays: row, info, info of the reset that followed. None stands for "nothing in it".
Extra = tuple[int, dict[str, Any] | None, dict[str, Any] | None]

TRUNCATED = "TimeLimit.truncated"
TERMINAL = "terminal_observation"


class Command(IntEnum):
    """What environments are asked for beside steps. The arguments are named in the method that carries it out."""

    RESET = 1
    GET_ATTR = 2
    SET_ATTR = 3
    HAS_ATTR = 4
    ENV_METHOD = 5
    IS_WRAPPED = 6
    RENDER = 7


@dataclass(frozen=True)
class Description:
    """What the learner must know of a built share: all of it from its first environment, as in DummyVecEnv."""

    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    metadata: dict[str, Any]


class EnvGroup:
    """Some environments that one process steps in turn.

    Whatever they raise comes back as an `EnvFailure`, since it may have to travel to another process.

    Args:
        envs: The environments.
        first: Index of the first of them among all.
    """

    def __init__(self, envs: Sequence[gym.Env[Any, Any]], first: int) -> None:
        self.envs = list(envs)
        self.first = first
        self._numbered = list(enumerate(self.envs))
        self._place: Any = [0]
        self._place_word = 0

    @classmethod
    def build(cls, factories: Sequence[Callable[[], gym.Env[Any, Any]]], first: int) -> EnvGroup | EnvFailure:
        """Builds the environments; when one fails, those built before it are closed."""
        envs: list[gym.Env[Any, Any]] = []
        try:
            for factory in factories:
                envs.append(_gymnasium_env(factory()))  # noqa: PERF401 (those built so far are needed when one fails)
            if len({id(env.unwrapped) for env in envs}) < len(envs):
                raise ValueError("the functions that build the environments have returned one environment more than once")
        except (Exception, SystemExit) as error:  # whatever the user's code raises travels to the learner
            failure = EnvFailure.of(first + min(len(envs), len(factories) - 1), "its construction", error)
            cls(envs, first).close()
            return failure
        return cls(envs, first)

    def describe(self) -> Description:
        """Describes the first environment."""
        env = self.envs[0]
        return Description(env.observation_space, env.action_space, env.metadata)

    def attach(self, rows: Batch, place: Any = None, word: int = 0) -> None:
        """Says where results go.

        Args:
            rows: This share's rows of the batch.
            place: Sequence in which to note the environment at work, or None.
            word: Where in it.
        """
        self._rows = rows
        if place is not None:
            self._place, self._place_word = place, word
        self._place[self._place_word] = self.first
        self._rewards, self._dones, self._flags = rows.rewards, rows.dones, rows.flags
        self._single = rows.observations.get(None)

    def step(self, actions: Any, *, masked: bool = False) -> list[Extra] | EnvFailure:
        """Steps each environment once, resetting those whose episode ends.

        Args:
            actions: One for each environment.
            masked: Whether action masks go into the rows, too.

        Returns:
            What did not fit the rows, for the environments that have any.
        """
        extras: list[Extra] = []
        rewards, dones, flags, single = self._rewards, self._dones, self._flags, self._single
        place, word, first = self._place, self._place_word, self.first
        row = 0
        try:
            for row, env in self._numbered:
                place[word] = first + row
                observation, rewards[row], terminated, truncated, info = env.step(actions[row])
                cut = info[TRUNCATED] = truncated and not terminated
                if terminated or truncated:
                    observation = self._end_episode(row, env, observation, info, extras)
                else:
                    dones[row] = False
                    flags[row] = TRUNCATED_BIT if cut else 0
                    if len(info) > 1:
                        extras.append((row, info, None))
                if single is None:
                    self._save(row, observation)
                else:
                    single[row] = observation
        except (Exception, SystemExit) as error:  # whatever the user's code raises travels to the learner
            return EnvFailure.of(first + row, "step", error)
        if masked:
            self._save_masks()
        return extras

    def execute(self, command: Command, rows: Sequence[int], arguments: Sequence[Any]) -> list[Any] | EnvFailure:
        """Carries out a command.

        Args:
            command: What to do.
            rows: With which environments, in this order.
            arguments: For RESET the seed and options of each; otherwise what the command takes.

        Returns:
            One result for each of `rows`.
        """
        results = []
        row = 0
        try:
            for position, row in enumerate(rows):
                self._place[self._place_word] = self.first + row
                if command is Command.RESET:
                    results.append(self._reset(row, *arguments[position]))
                else:
                    results.append(_ACTIONS[command](self.envs[row], *arguments))
        except (Exception, SystemExit) as error:  # whatever the user's code raises travels to the learner
            return EnvFailure.of(self.first + row, _NAMES[command], error)
        return results

    @property
    def at_work(self) -> int:
        """Index of the environment that was asked for something last."""
        return int(self._place[self._place_word])

    def close(self) -> EnvFailure | None:
        """Closes the environments, all of them even when some fail; returns the first failure."""
        failure = None
        for row, env in self._numbered:
            try:
                env.close()
            except (Exception, SystemExit) as error:  # the others must be closed; the first failure is told
                failure = failure or EnvFailure.of(self.first + row, "close", error)
        self.envs, self._numbered = [], []
        return failure

    def _end_episode(self, row: int, env: gym.Env[Any, Any], last: Any, info: dict[str, Any], extras: list[Extra]) -> Any:
        """Keeps the last observation and resets the environment; returns the new episode's first observation."""
        flags = DONE_BIT | TRUNCATED_BIT if info[TRUNCATED] else DONE_BIT
        info.pop(TERMINAL, None)
        if self._save_terminal(row, last):
            flags |= TERMINAL_BIT
            has_info = len(info) > 1
        else:
            info[TERMINAL] = last
            has_info = True
        observation, reset_info = env.reset()
        if has_info or reset_info:
            extras.append((row, info if has_info else None, reset_info or None))
        self._dones[row] = True
        self._flags[row] = flags
        return observation

    def _save_masks(self) -> None:
        """Saves action masks. One that the rows cannot hold, or an error instead, is left for whoever asks for it."""
        rows = self._rows
        for row, env in self._numbered:
            try:
                mask = env.get_wrapper_attr(METHOD)()
            except (Exception, SystemExit):  # whatever the user's code raises is raised again when the mask is asked for
                mask = None
            rows.mask_forms[row] = write_mask(mask, rows.masks[row], rows.layout.mask)

    def _save(self, row: int, observation: Any) -> None:
        for key, array in self._rows.observations.items():
            array[row] = observation if key is None else observation[key]

    def _save_terminal(self, row: int, observation: Any) -> bool:
        """Saves an observation in the arrays if they give back exactly what it was."""
        terminal = self._rows.terminal
        if None in terminal:
            parts = {None: observation}
        elif type(observation) is dict and observation.keys() == terminal.keys():
            parts = observation
        else:
            return False
        for key, array in terminal.items():
            part = parts[key]
            if type(part) is not np.ndarray or part.dtype != array.dtype or part.shape != array.shape[1:]:
                return False
        for key, array in terminal.items():
            array[row] = parts[key]
        return True

    def _reset(self, row: int, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any]:
        observation, info = self.envs[row].reset(seed=seed, **({"options": options} if options else {}))
        self._save(row, observation)
        return info


def _gymnasium_env(env: Any) -> gym.Env[Any, Any]:
    """Adapts environments of the older gym as SB3 does, without loading SB3 for those that need no adapting."""
    if isinstance(env, gym.Env):
        return env
    from stable_baselines3.common.vec_env.patch_gym import _patch_env

    return _patch_env(env)


def _has_attr(env: gym.Env[Any, Any], name: str) -> bool:
    try:
        env.get_wrapper_attr(name)
    except AttributeError:
        return False
    return True


def _is_wrapped(env: gym.Env[Any, Any], wrapper: type[gym.Wrapper[Any, Any, Any, Any]]) -> bool:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper):
            return True
        env = env.env
    return False


_ACTIONS: dict[Command, Callable[..., Any]] = {
    Command.GET_ATTR: lambda env, name: env.get_wrapper_attr(name),
    Command.SET_ATTR: setattr,
    Command.HAS_ATTR: _has_attr,
    Command.ENV_METHOD: lambda env, name, args, kwargs: env.get_wrapper_attr(name)(*args, **kwargs),
    Command.IS_WRAPPED: _is_wrapped,
    Command.RENDER: lambda env: env.render(),
}
_NAMES = {
    Command.RESET: "reset",
    Command.GET_ATTR: "get_attr",
    Command.SET_ATTR: "set_attr",
    Command.HAS_ATTR: "has_attr",
    Command.ENV_METHOD: "env_method",
    Command.IS_WRAPPED: "env_is_wrapped",
    Command.RENDER: "render",
}
