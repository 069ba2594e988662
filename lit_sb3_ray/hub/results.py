"""How good a pushed model is: its evaluation, as `results.json` and the model card tell it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from lit_sb3_ray.experiment.playback import Player
from lit_sb3_ray.hub.names import RESULTS


@dataclass(frozen=True)
class Results:
    """An evaluation in figures.

    Attributes:
        mean_reward: Mean return of the episodes.
        std_reward: Its (population) standard deviation.
        is_deterministic: Whether the likeliest actions were taken.
        n_eval_episodes: Episodes.
        eval_datetime: When it was, in ISO format.
        mean_ep_length: Mean length of the episodes, in env steps.
        success_rate: Share of episodes that reached their goal; None where the environment does not say.
    """

    mean_reward: float
    std_reward: float
    is_deterministic: bool
    n_eval_episodes: int
    eval_datetime: str
    mean_ep_length: float
    success_rate: float | None

    @property
    def spread(self) -> str:
        """Mean and standard deviation, as model cards have them."""
        return f"{self.mean_reward:.2f} +/- {self.std_reward:.2f}"


def evaluate_player(player: Player, n_episodes: int, seed: int) -> Results:
    """Plays whole episodes.

    Args:
        player: The agent in its environments.
        n_episodes: Episodes.
        seed: Seeds them.
    """
    from lit_sb3_ray.lit.evaluation import evaluate

    done = evaluate(player.model, player.env, n_episodes, deterministic=player.deterministic, seed=seed)
    return Results(
        mean_reward=done.mean_reward,
        std_reward=done.std_reward,
        is_deterministic=player.deterministic,
        n_eval_episodes=len(done.returns),
        eval_datetime=datetime.now(UTC).isoformat(timespec="seconds"),
        mean_ep_length=done.mean_ep_length,
        success_rate=done.success_rate,
    )


def write_results(results: Results, folder: Path) -> None:
    """Writes `results.json`.

    Args:
        results: The figures.
        folder: Where it goes.
    """
    (folder / RESULTS).write_text(f"{json.dumps(asdict(results), indent=2)}\n")
