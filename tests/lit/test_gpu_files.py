"""What was saved on a GPU is loaded where there is none.

A tensor's file says where the tensor was. Files are made here that say `cuda:99`, of tensors of the CPU.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import lit_sb3_ray
from lit_sb3_ray import ExperimentManager, load_run

PACKAGE = Path(lit_sb3_ray.__file__).parent
# What loads no tensors.
HARMLESS = {"np.load", "pickle.load", "json.load", "VecNormalize.load", "_Reader(io.BytesIO(content), where, remedy).load"}
# Are handed the device among other options, as the warm start below shows.
HANDED = {"experiment/warm_start.py: hyperparams.algo_class.load", "experiment/learner.py: resolved.algo_class.load"}
LOADING = {"load", "load_from_zip_file", "set_parameters"}


@pytest.fixture
def pretended_gpu(monkeypatch):
    """Lets torch write that tensors are on a GPU; gives what ends that."""
    monkeypatch.setattr(torch.serialization, "location_tag", lambda storage: "cuda:99")
    return monkeypatch.undo


def calls():
    """All calls in the package that may load tensors, as their text and the names of their arguments."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                text = ast.unparse(node.func)
                if text.rpartition(".")[2] in LOADING and text not in HARMLESS:
                    yield f"{path.relative_to(PACKAGE)}: {text}", {word.arg for word in node.keywords}


def test_whatever_loads_tensors_says_where_to():
    found = list(calls())
    assert len(found) >= 5
    assert {text for text, words in found if not words & {"device", "map_location"}} == HANDED


def test_the_pretence_works(tmp_path, pretended_gpu):
    torch.save(torch.zeros(2), tmp_path / "tensor.pt")
    pretended_gpu()
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(tmp_path / "tensor.pt")


@pytest.mark.parametrize(
    ("algo", "env_id", "hyperparams"),
    [
        ("ppo", "Pendulum-v1", {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "n_envs": 1, "normalize": True}),
        ("sac", "Pendulum-v1", {"learning_starts": 16, "buffer_size": 500, "batch_size": 8, "ent_coef": "auto"}),
    ],
)
def test_a_run_of_a_gpu_is_played_started_from_and_gone_on_with(algo, env_id, hyperparams, tmp_path, pretended_gpu):
    settings = {"hyperparams": hyperparams, "eval_freq": -1, "verbose": 0, "seed": 3, "vec_env_type": "dummy", "device": "cpu"}
    manager = ExperimentManager(None, algo, env_id, str(tmp_path), n_timesteps=64, **settings)
    model = manager.setup_experiment()
    manager.learn(model)
    manager.save_trained_model(model)
    run = manager.save_path
    pretended_gpu()
    loaded, env = load_run(run, device="cpu")
    env.close()
    assert loaded.device.type == "cpu"
    assert all(torch.equal(a, b) for a, b in zip(loaded.policy.parameters(), model.policy.parameters(), strict=True))
    warm = ExperimentManager(
        None, algo, env_id, str(tmp_path), n_timesteps=64, trained_agent=str(manager.run.model), **settings
    )
    warm.learn(warm.setup_experiment())
    resumed = ExperimentManager(None, algo, env_id, str(tmp_path), n_timesteps=128, resume=str(run), **settings)
    more = resumed.setup_experiment()
    resumed.learn(more)
    assert more.num_timesteps == 128
