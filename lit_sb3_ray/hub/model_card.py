"""The model card: what a repository's page says of the agent, and the metadata that the Hub and rl_zoo3 read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lit_sb3_ray.config.plain import to_plain
from lit_sb3_ray.hub.results import Results

TAGS = ("deep-reinforcement-learning", "reinforcement-learning", "stable-baselines3", "lit-sb3-ray")


@dataclass(frozen=True)
class CardFacts:
    """What a card tells.

    Attributes:
        algo: The algorithm's name in commands.
        algo_class: Its class's name; rl_zoo3 finds models by it.
        env_id: The environment's id.
        organization: Whose repository it is.
        repo_name: The repository's name, where it is not the model's.
        hyperparameters: The run's `config.yml`.
        env_kwargs: Arguments of the environment's constructor.
        gym_packages: Modules that register the environment.
        results: The evaluation.
        n_timesteps: Env steps the model was trained for.
        replay: Whether there is a video.
    """

    algo: str
    algo_class: str
    env_id: str
    organization: str
    repo_name: str | None
    hyperparameters: Mapping[str, Any]
    env_kwargs: Mapping[str, Any]
    gym_packages: tuple[str, ...]
    results: Results
    n_timesteps: int
    replay: bool


def build_card(facts: CardFacts) -> str:
    """Writes a card.

    Args:
        facts: What it tells.

    Returns:
        Markdown, with its metadata in front.
    """
    from huggingface_hub import EvalResult, ModelCardData

    result = EvalResult(
        task_type="reinforcement-learning",
        task_name="reinforcement-learning",
        dataset_type=facts.env_id,
        dataset_name=facts.env_id,
        metric_type="mean_reward",
        metric_name="mean_reward",
        metric_value=facts.results.spread,
        verified=False,
    )
    data = ModelCardData(
        library_name="stable-baselines3",
        tags=[facts.env_id, *TAGS],
        model_name=facts.algo_class,
        eval_results=[result],
    )
    parts = [_introduction(facts), _evaluation(facts), _usage(facts), _settings(facts)]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n".join(parts)


def _introduction(facts: CardFacts) -> str:
    video = "\n`replay.mp4` shows it at play.\n" if facts.replay else ""
    return (
        f"# {facts.algo_class} on {facts.env_id}\n\n"
        f"An agent for `{facts.env_id}`, trained with {facts.algo_class} of Stable-Baselines3 or its contrib package.\n"
        f"It has seen {facts.n_timesteps:,} env steps.\n"
        f"{video}"
    )


def _evaluation(facts: CardFacts) -> str:
    results = facts.results
    success = "" if results.success_rate is None else f"| success rate | {100 * results.success_rate:.1f} % |\n"
    return (
        "## Evaluation\n\n"
        "| | |\n| --- | --- |\n"
        f"| mean return | {results.spread} |\n"
        f"| mean episode length | {results.mean_ep_length:.1f} |\n"
        f"{success}"
        f"| episodes | {results.n_eval_episodes} |\n"
        f"| actions | {'the likeliest' if results.is_deterministic else 'drawn at random from the policy'} |\n"
        f"| day | {results.eval_datetime[:10]} |\n"
    )


def _usage(facts: CardFacts) -> str:
    agent = f"--algo {facts.algo} --env {facts.env_id} -f logs"
    name = "" if facts.repo_name is None else f" -name {facts.repo_name}"
    packages = f" --gym-packages {' '.join(facts.gym_packages)}" if facts.gym_packages else ""
    return (
        "## How to use it\n\n"
        "```bash\n"
        "pip install 'lit-sb3-ray[hub]'\n"
        f"lit-sb3-ray load-from-hub {agent} -orga {facts.organization}{name}\n"
        f"lit-sb3-ray enjoy {agent}{packages}\n"
        "```\n\n"
        "The agent is then a run folder like any other. In Python:\n\n"
        "```python\n"
        "from lit_sb3_ray import load_run\n\n"
        f'model, env = load_run("<the folder that load-from-hub has printed>")\n'
        "```\n\n"
        "The files are read without running anything that is in them. They are laid out as RL Baselines3 Zoo has them, whose\n"
        "`rl_zoo3.load_from_hub` takes the same arguments.\n"
    )


def _settings(facts: CardFacts) -> str:
    text = f"## Hyperparameters\n\n```yaml\n{_yaml(facts.hyperparameters)}```\n"
    if facts.env_kwargs:
        text += f"\n## Arguments of the environment\n\n```yaml\n{_yaml(facts.env_kwargs)}```\n"
    return text


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(to_plain(content), sort_keys=True, allow_unicode=True)
