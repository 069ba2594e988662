"""One small file a run, by which a benchmark goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, replace
from pathlib import Path

from lit_sb3_ray.benchmarking.runs import Run
from lit_sb3_ray.benchmarking.scoring import Rules, Score
from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.locate import find_model
from lit_sb3_ray.experiment.run_folder import open_run, replace_file

logger = logging.getLogger(__name__)

RESULTS = "results"


def result_file(folder: Path, run: Run, rules: Rules) -> Path:
    """Names the file of a run's result, by what is played and how.

    Args:
        folder: The benchmark's folder.
        run: The run.
        rules: How it is played.

    Returns:
        A name that changes with the contents of the model, its statistics and its settings, and with the rules. It stays when
        the log folder is moved.

    Raises:
        ConfigError: The run has no such model.
    """
    opened = open_run(run.path)
    model = find_model(run.path, opened.env_id, "best" if rules.load_best else "final")
    digest = hashlib.sha256(json.dumps(asdict(rules), sort_keys=True).encode())
    for path in (model, opened.statistics_of(model), opened.settings / "config.yml", opened.settings / "args.yml"):
        digest.update(_sha256(path) if path.is_file() else b"none")
    name = f"{run.path.name}_{digest.hexdigest()[:16]}.json"
    # By the folder it lies in: what a run that was downloaded tells of its algorithm may lead elsewhere.
    return folder / RESULTS / run.path.parent.name / name


def read_score(path: Path) -> Score | None:
    """Reads a result; None when there is none, or none that can be read."""
    try:
        score = Score(**json.loads(path.read_text())["score"])
        counts = (score.n_timesteps, score.eval_timesteps, score.eval_episodes)
        if not all(isinstance(count, int) for count in counts):
            raise ValueError(f"its counts are {counts}")
        return replace(score, mean_reward=float(score.mean_reward), std_reward=float(score.std_reward))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        logger.warning("%s is damaged, and its run is played again: %s", path, error)
        return None


def write_score(path: Path, run: Run, rules: Rules, score: Score) -> None:
    """Writes a result, whole or not at all.

    Raises:
        ConfigError: It cannot be written.
    """
    content = {"run": str(run.path), "algo": run.algo, "env_id": run.env_id, "rules": asdict(rules), "score": asdict(score)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda partial: partial.write_text(f"{json.dumps(content, indent=2)}\n"))
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
