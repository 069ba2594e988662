"""Playing one run's agent, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass

from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.errors import ConfigError


@dataclass(frozen=True)
class Rules:
    """How every run is played.

    Attributes:
        n_timesteps: Steps in each environment.
        n_envs: Environments.
        seed: Seed of environments and actions.
        load_best: Play the best model instead of the final one.
    """

    n_timesteps: int = 150_000
    n_envs: int = 1
    seed: int = 0
    load_best: bool = False


@dataclass(frozen=True)
class Score:
    """What playing a run has come to.

    Attributes:
        mean_reward: Mean return, as the monitor below the wrappers tells it: an Atari game's own score.
        std_reward: Its (population) standard deviation.
        n_timesteps: Env steps that the model has been trained for.
        eval_timesteps: Env steps in the episodes that ended; an Atari game's frames.
        eval_episodes: How many episodes ended.
    """

    mean_reward: float
    std_reward: float
    n_timesteps: int
    eval_timesteps: int
    eval_episodes: int


def score_run(
    run: Run, rules: Rules, *, num_threads: int = 1, gym_packages: tuple[str, ...] = (), trust: bool = False
) -> Score:
    """Plays a run's agent; stochastically on Atari and MiniGrid, as everywhere.

    Args:
        run: The run.
        rules: How.
        num_threads: CPU threads for torch.
        gym_packages: Modules to import first, beside those of the run.
        trust: Read a downloaded model as if it were one's own; see `load_run`.

    Raises:
        ConfigError: The run cannot be loaded, or no episode ended in time.
    """
    import torch
    from stable_baselines3.common.utils import set_random_seed

    from lit_sb3_ray.envs.families import is_atari, is_minigrid
    from lit_sb3_ray.experiment.load import load_run
    from lit_sb3_ray.experiment.playback import play, summarize

    torch.set_num_threads(num_threads)
    set_random_seed(rules.seed)
    model, env = load_run(
        run.path,
        "best" if rules.load_best else "final",
        algo=run.algo,
        n_envs=rules.n_envs,
        seed=rules.seed,
        device="cpu",
        gym_packages=gym_packages,
        trusted=True if trust else None,
    )
    try:
        deterministic = not (is_atari(run.env_id) or is_minigrid(run.env_id))
        steps = play(model, env, rules.n_timesteps, deterministic=deterministic, monitored=True)
        episodes = [episode for ended in steps for episode in ended]
    finally:
        env.close()
    summary = summarize(episodes)
    if summary is None:
        raise ConfigError(f"no episode ended within {rules.n_timesteps} steps")
    return Score(
        mean_reward=summary.mean_reward,
        std_reward=summary.std_reward,
        n_timesteps=int(model.num_timesteps),
        eval_timesteps=sum(episode.length for episode in episodes),
        eval_episodes=summary.episodes,
    )
