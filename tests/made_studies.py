"""Studies as this package and others leave them, written through Optuna into real storages."""

import json
import math
import random

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

MARKS = [2000, 4000, 6000, 8000, 10000]
SPACE = {
    "learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
    "one_minus_gamma": FloatDistribution(1e-4, 0.03, log=True),
    "n_steps_pow": IntDistribution(5, 10),
    "net_arch": CategoricalDistribution(["tiny", "small", "medium"]),
}
ATTRIBUTES = {
    "algo": "ppo",
    "env": "CartPole-v1",
    "n_timesteps": 10000,
    "marks": MARKS,
    "pruner": "asha",
    "sampler": "tpe",
    "objective": "last",
    "command": "lit-sb3-ray tune --algo ppo --env CartPole-v1",
}


def journal(path):
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))


def new_study(storage=None, name="s", attributes=ATTRIBUTES, direction="maximize"):
    study = optuna.create_study(storage=storage, study_name=name, direction=direction)
    for key, value in attributes.items():
        study.set_user_attr(key, value)
    return study


def drawn(rng):
    return {
        "learning_rate": 10 ** rng.uniform(-5, -2),
        "one_minus_gamma": 10 ** rng.uniform(-4, math.log10(0.03)),
        "n_steps_pow": rng.randint(5, 10),
        "net_arch": rng.choice(["tiny", "small", "medium"]),
    }


def value_of_params(params):
    """The learning rate decides nearly all: the nearer to 1e-3 the better."""
    return 500 - 150 * abs(math.log10(params["learning_rate"]) + 3) + params.get("n_steps_pow", 0)


def row(state, params, value=None, curve=None, **attributes):
    distributions = {name: SPACE[name] for name in params}
    return create_trial(
        state=state,
        params=params,
        distributions=distributions,
        value=value,
        intermediate_values=curve or {},
        user_attrs=attributes,
    )


def complete(params, value=None, **attributes):
    value = value_of_params(params) if value is None else value
    curve = {mark: value * (place + 1) / len(MARKS) for place, mark in enumerate(MARKS)}
    entry = {"n_timesteps": 10000, "n_envs": 2, "policy": "MlpPolicy", "learning_rate": params.get("learning_rate", 3e-4)}
    facts = {"num_timesteps": 10000, "hyperparams": json.dumps(entry), "seed": 7, **attributes}
    return row(TrialState.COMPLETE, params, value, curve, **facts)


def pruned(params, rungs=1, **attributes):
    curve = {mark: value_of_params(params) * (place + 1) / len(MARKS) for place, mark in enumerate(MARKS[:rungs])}
    return row(TrialState.PRUNED, params, list(curve.values())[-1], curve, num_timesteps=MARKS[rungs - 1], **attributes)


def failed(params, error="ValueError: the joint is broken", **attributes):
    trace = f'Traceback (most recent call last):\n  File "x.py", line 1, in step\n{error}\n'
    return row(TrialState.FAIL, params, failure=error, traceback=trace, **attributes)


def fill(study, number=20, seed=0):
    """Rows of all kinds: of seven trials three complete, three pruned at different rungs, one failed."""
    rng = random.Random(seed)
    rows = []
    for place in range(number):
        params = drawn(rng)
        kind = place % 7
        if kind in (0, 2, 4):
            rows.append(complete(params, spread=3.25, seed_values=[1.0, 2.0, 3.0]))
        elif kind == 6:
            rows.append(failed(params))
        else:
            rows.append(pruned(params, rungs=kind // 2 + 1, jumped=[2000] if kind == 5 else []))
    study.add_trials(rows)
    return study
