"""Run folders with nothing but logs, made by hand, and a look at the pictures made of them."""

import json
import math

import numpy as np
from matplotlib import image


def write_monitor(run, episodes, index=0, t_start=1000.0, keywords=()):
    """Writes a monitor file; an episode is (return, length, seconds, *keywords)."""
    run.mkdir(parents=True, exist_ok=True)
    lines = [f"#{json.dumps({'t_start': t_start, 'env_id': 'CartPole-v1'})}", ",".join(("r", "l", "t", *keywords))]
    lines += [",".join(map(str, episode)) for episode in episodes]
    path = run / f"{index}.monitor.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def rising_episodes(count, length=10, first=0.0):
    return [(first + number, length, round(0.5 * (number + 1), 3)) for number in range(count)]


def write_evaluations(run, timesteps, results, **more):
    run.mkdir(parents=True, exist_ok=True)
    results = np.asarray(results, float)
    arrays = {"timesteps": np.asarray(timesteps), "results": results, "ep_lengths": np.full(results.shape, 7), **more}
    np.savez(run / "evaluations.npz", **arrays)


def make_runs(logs, algo, env_id, ends, n_evaluations=5, every=1000, n_episodes=3):
    """Makes runs 1, 2, ... that rise from 0 to the given ends, with episodes a little below and above."""
    spread = np.linspace(-1, 1, n_episodes)
    steps = every * np.arange(1, n_evaluations + 1)
    for number, end in enumerate(ends, start=1):
        run = logs / algo / f"{env_id.replace('/', '-')}_{number}"
        write_evaluations(run, steps, end * steps[:, None] / steps[-1] + spread[None, :])
        write_monitor(run, rising_episodes(30))
    return logs


def look_at(path):
    """Opens a picture: its width and height, and the parts of its pixels that are white and that are coloured."""
    pixels = image.imread(path)[..., :3]
    height, width = pixels.shape[:2]
    white = (pixels > 0.99).all(axis=-1).mean()
    coloured = (pixels.max(axis=-1) - pixels.min(axis=-1) > 0.2).mean()
    return width, height, white, coloured


def assert_drawn(path):
    """The picture is there, of a usual size, neither blank nor filled, and has colours."""
    if path.suffix == ".png":
        width, height, white, coloured = look_at(path)
        assert width > 300
        assert height > 150
        assert 0.3 < white < 0.99
        assert coloured > 0.0005
    elif path.suffix == ".svg":
        text = path.read_text()
        assert text.count("<path") > 10
        assert "</svg>" in text
    else:
        content = path.read_bytes()
        assert content.startswith(b"%PDF")
        assert b"%%EOF" in content[-32:]


def standard_error(values):
    return float(np.std(values)) / math.sqrt(len(values))
