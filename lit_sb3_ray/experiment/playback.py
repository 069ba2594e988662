"""Plays a trained agent in any number of environments and yields the episodes as they end."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


@dataclass(frozen=True)
class Player:
    """A trained agent in its environments, and how it is played there.

    Attributes:
        model: The agent.
        env: Its environments, wrapped as the agent needs them.
        deterministic: Whether it takes the likeliest action instead of drawing one.
        monitored: Whether episodes are told by the monitor below the wrappers, as Atari needs it; see `play`.
    """

    model: BaseAlgorithm
    env: VecEnv
    deterministic: bool
    monitored: bool


@dataclass(frozen=True)
class Episode:
    """An episode that ended.

    Attributes:
        env: Index of the environment it was played in.
        reward: Its return; the game's score where the monitor is asked.
        length: Its length in steps; in frames of the game where the monitor is asked.
        success: Whether its goal was reached, None where the environment does not say.
    """

    env: int
    reward: float
    length: int
    success: bool | None


@dataclass(frozen=True)
class Summary:
    """Several episodes in figures: means and (population) standard deviations.

    Attributes:
        episodes: How many there are.
        mean_reward: Mean return.
        std_reward: Its spread.
        mean_length: Mean length.
        std_length: Its spread.
        success_rate: Share of the episodes that say so that reached their goal, from 0 to 1; None where none says.
    """

    episodes: int
    mean_reward: float
    std_reward: float
    mean_length: float
    std_length: float
    success_rate: float | None


def play(
    model: BaseAlgorithm,
    env: VecEnv,
    n_steps: int,
    *,
    deterministic: bool = True,
    monitored: bool = False,
    render: bool = False,
) -> Iterator[list[Episode]]:
    """Plays an agent, threading recurrent state and action masks through its policy where it has them.

    Args:
        model: The agent.
        env: Its environments, wrapped as the agent needs them.
        n_steps: Steps to take in every environment.
        deterministic: Take the likeliest action instead of drawing one.
        monitored: Take returns, lengths and the ends of episodes from the monitor below the wrappers. Atari needs it: its
            wrappers clip rewards and end an episode with each life.
        render: Show every step on the screen.

    Yields:
        After each step, the episodes that ended with it.
    """
    observations = env.reset()
    masked = _takes_masks(model, env)
    state: tuple[np.ndarray, ...] | None = None
    starts = np.ones(env.num_envs, dtype=bool)
    rewards = np.zeros(env.num_envs)
    lengths = np.zeros(env.num_envs, dtype=np.int64)
    for _ in range(n_steps):
        extra: dict[str, Any] = {"action_masks": np.stack(env.env_method("action_masks"))} if masked else {}
        actions, state = model.predict(
            observations,  # type: ignore[arg-type]  # a VecEnv may return a tuple of arrays, which no policy takes
            state=state,
            episode_start=starts,
            deterministic=deterministic,
            **extra,
        )
        observations, step_rewards, starts, infos = env.step(actions)
        if render:
            env.render("human")
        rewards += step_rewards
        lengths += 1
        ended = []
        for index in np.flatnonzero(starts):
            episode = _episode(int(index), float(rewards[index]), int(lengths[index]), infos[index], monitored)
            if episode is not None:
                ended.append(episode)
            rewards[index] = 0.0
            lengths[index] = 0
        yield ended


def summarize(episodes: list[Episode]) -> Summary | None:
    """Puts episodes in figures.

    Args:
        episodes: The episodes.

    Returns:
        Their figures, or None when there are no episodes.
    """
    if not episodes:
        return None
    rewards = np.array([episode.reward for episode in episodes])
    lengths = np.array([episode.length for episode in episodes])
    told = [episode.success for episode in episodes if episode.success is not None]
    return Summary(
        episodes=len(episodes),
        mean_reward=float(rewards.mean()),
        std_reward=float(rewards.std()),
        mean_length=float(lengths.mean()),
        std_length=float(lengths.std()),
        success_rate=float(np.mean(told)) if told else None,
    )


def _episode(env: int, reward: float, length: int, info: dict[str, Any], monitored: bool) -> Episode | None:
    success = info.get("is_success")
    told = None if success is None else bool(success)
    if not monitored:
        return Episode(env, reward, length, told)
    record = info.get("episode")
    return None if record is None else Episode(env, float(record["r"]), int(record["l"]), told)


def _takes_masks(model: BaseAlgorithm, env: VecEnv) -> bool:
    return "action_masks" in inspect.signature(model.predict).parameters and env.has_attr("action_masks")
