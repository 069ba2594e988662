"""Search spaces of a user's, for `--search-space tests.own_spaces:NAME`."""


def by_names(trial):
    """Draws under the names of hyperparameters."""
    trial.suggest_float("gamma", 0.9, 0.99)
    trial.suggest_categorical("policy_kwargs.net_arch", ["dict(pi=[8], vf=[8])", "dict(pi=[16], vf=[16])"])
    if trial.suggest_categorical("use_sde", [True, False]):
        trial.suggest_int("sde_sample_freq", 1, 8)


def by_value(trial):
    """Draws under names of its own, and returns what they mean."""
    width = 2 ** trial.suggest_int("width", 2, 5)
    rate = trial.suggest_float("rate", 1e-4, 1e-2, log=True)
    return {
        "learning_rate": {"kind": "linear", "start": rate},
        "policy_kwargs": {"net_arch": [width, width]},
        "n_steps": trial.suggest_int("steps", 100, 120),
        "batch_size": 64,
    }


def raising(trial):
    trial.suggest_float("gamma", 0.9, 0.99)
    raise RuntimeError("no such thing")


def unknown_name(trial):
    trial.suggest_float("gama", 0.9, 0.99)


def unknown_key(trial):
    return {"learning_rat": trial.suggest_float("x", 0.9, 0.99)}


def silent(trial):
    """Draws nothing."""


def strange(trial):
    trial.suggest_float("gamma", 0.9, 0.99)
    return [1]


def tuples(trial):
    trial.suggest_categorical("policy_kwargs.net_arch", [(8, 8), (16, 16)])


def slashed(trial):
    return {"gamma": trial.suggest_float("a/b", 0.9, 0.99)}


NUMBER = 3
