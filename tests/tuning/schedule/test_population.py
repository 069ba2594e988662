"""Population based training: what the members differ in, how they change, and a real run of it."""

import pickle
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from ray import tune
from ray.tune.result import SHOULD_CHECKPOINT
from ray.tune.schedulers import PopulationBasedTraining
from ray.tune.search import Searcher

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks
from lit_sb3_ray.tuning.schedule.population import build_pbt, find_members
from lit_sb3_ray.tuning.schedule.scalars import SCALARS
from lit_sb3_ray.tuning.space.conversion import convert
from lit_sb3_ray.tuning.space.search_space import find_space
from lit_sb3_ray.tuning.space.spaces import SPACES

MARKS = evaluation_marks(10_000, 5, "pbt")
PPO_ENTRY = {"n_steps": 32, "batch_size": 32, "learning_rate": "lin_0.001", "policy_kwargs": "dict(net_arch=[8])"}


def members_of(algo, entry=None, custom=None, source=None):
    return find_members(find_space(algo, source).settle(custom), entry or {}, custom)


def population(members, size, seed=0):
    """What Optuna draws for the first members."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    drawn = []
    for _ in range(size):
        trial = study.ask()
        members.sample(trial)
        drawn.append(trial.params)
    return drawn


def test_members_of_ppo_differ_in_scalars_alone():
    assert members_of("ppo", PPO_ENTRY).distributions == {
        "one_minus_gamma": FloatDistribution(1e-4, 0.03, log=True),
        "learning_rate": FloatDistribution(1e-5, 2e-3, log=True),
        "one_minus_gae_lambda": FloatDistribution(1e-4, 0.1, log=True),
        "ent_coef": FloatDistribution(1e-8, 0.1, log=True),
        "clip_range": CategoricalDistribution((0.1, 0.2, 0.3, 0.4)),
        "n_epochs": CategoricalDistribution((1, 5, 10, 20)),
        "max_grad_norm": FloatDistribution(0.3, 2.0),
    }


@pytest.mark.parametrize("algo", sorted(SPACES))
def test_every_algorithm_has_members_whose_hyperparameters_are_scalars(algo):
    members = members_of(algo, {"n_steps": 32})
    for params in population(members, 5):
        hyperparams = members.hyperparams(params)
        assert params.keys() == members.distributions.keys()
        assert len(hyperparams) == len(params) >= 2
        assert hyperparams.keys() <= SCALARS
        assert all(isinstance(value, int | float) for value in hyperparams.values())


def test_what_the_command_line_gives_is_the_same_for_all():
    assert set(members_of("sac", custom={"gamma": 0.9, "tau": 0.01}).distributions) == {"learning_rate"}
    with pytest.raises(ConfigError, match="'pbt' finds nothing that it may change in the built-in space of crossq"):
        members_of("crossq", custom={"gamma": 0.9, "learning_rate": 1e-3})


def test_a_space_of_the_users_own(tmp_path):
    file = tmp_path / "space.yml"
    file.write_text(
        "n_critic_updates: {type: int, low: 1, high: 64, log: true}\n"
        "gae_lambda: {type: float, low: 0.8, high: 1.0, step: 0.05}\n"
        "target_kl: {type: categorical, choices: [0.01, 0.02]}\n"
        "n_steps: {type: int, low: 8, high: 64}\n"
        "policy_kwargs.activation_fn: {type: categorical, choices: [nn.ReLU, nn.Tanh]}\n"
    )
    members = members_of("trpo", source=str(file))
    assert set(members.distributions) == {"n_critic_updates", "gae_lambda", "target_kl"}
    changed = members.apply({"params": {"n_critic_updates": 6.6, "gae_lambda": 0.93, "target_kl": 0.02}})
    assert changed["params"] == {"n_critic_updates": 7, "gae_lambda": pytest.approx(0.95), "target_kl": 0.02}
    assert changed["hyperparams"] == changed["params"]


def test_what_cannot_change_is_refused(tmp_path):
    file = tmp_path / "space.yml"
    file.write_text("ent_coef: {type: categorical, choices: [auto, 0.1]}\n")
    with pytest.raises(ConfigError, match=r"'pbt' changes numbers only, but 'ent_coef' may be 'auto' \(.*space.yml\)"):
        members_of("sac", source=str(file))
    with pytest.raises(ConfigError, match="'pbt' needs a built-in search space or one in a file, not a function"):
        members_of("ppo", source="own_spaces:by_names")


def test_a_changed_config_stays_within_bounds_and_means_what_it_says():
    members = members_of("ppo", PPO_ENTRY, {"ent_coef": 0.0})
    params = {**population(members, 1)[0], "learning_rate": 0.1, "one_minus_gamma": 1e-6, "max_grad_norm": 0.01}
    config = {"trial": 3, "checkpoint": None, "params": params, "hyperparams": {"gamma": 0.5}}
    changed = members.apply(config)
    assert changed["trial"] == 3
    assert (changed["params"]["learning_rate"], changed["params"]["one_minus_gamma"]) == (2e-3, 1e-4)
    assert changed["params"]["max_grad_norm"] == 0.3
    assert changed["hyperparams"] == convert("ppo", changed["params"], PPO_ENTRY)
    assert changed["hyperparams"]["gamma"] == 1 - 1e-4
    assert config["params"]["learning_rate"] == 0.1
    assert "ent_coef" not in changed["hyperparams"]


class Controller:
    """What the scheduler asks of Tune: a search that has drawn the members, and saving at once."""

    def __init__(self):
        self.trials, self.taken = [], []
        self.search_alg = "a searcher"

    def get_trials(self):
        return self.trials

    def _schedule_trial_save(self, trial, result=None):
        trial.checkpoint = ("checkpoint of", trial.trial_id)
        return trial.checkpoint

    def pause_trial(self, trial, should_checkpoint):
        trial.status = "PAUSED"
        self.taken.append(trial.trial_id)


class Member:
    """As much of a trial of Tune's as the scheduler looks at."""

    def __init__(self, number, params):
        self.trial_id, self.status, self.experiment_tag, self.evaluated_params = f"tune-{number}", "RUNNING", "tag", {}
        manager = SimpleNamespace(checkpoint_config=SimpleNamespace(num_to_keep=None))
        self.run_metadata = SimpleNamespace(checkpoint_manager=manager)
        self.config = {"trial": number, "checkpoint": None, "params": params, "hyperparams": {}}

    def is_finished(self):
        return False

    def set_config(self, config):
        self.config = config

    def set_experiment_tag(self, tag):
        self.experiment_tag = tag


def changes(seed, rounds=30, rollout=2000):
    """Runs rounds in which number 0 is always the best of four and number 3 the worst; returns the worst's parameters."""
    members = members_of("ppo", PPO_ENTRY)
    scheduler = build_pbt(members, evaluation_marks(2000 * rounds, rounds, "pbt"), seed)
    scheduler._log_config = False
    assert scheduler.set_search_properties("mean_reward", "max")
    controller = Controller()
    controller.trials = [Member(number, params) for number, params in enumerate(population(members, 4, seed))]
    for trial in controller.trials:
        scheduler.on_trial_add(controller, trial)
    found = []
    for number in range(1, rounds + 1):
        for trial in controller.trials:
            reward = -float(trial.trial_id[-1])
            due = -(-2000 * number // rollout) * rollout
            scheduler.on_trial_result(controller, trial, {"timesteps_total": due, "mean_reward": reward})
            trial.status = "RUNNING"
        found.append(controller.trials[3].config)
    return members, controller, found


def test_the_worst_takes_over_from_the_best_and_stays_itself():
    members, controller, found = changes(0)
    assert set(controller.taken) == {"tune-3"}
    assert len(controller.taken) == 29  # At the first evaluation there is no checkpoint to take over yet.
    best = controller.trials[0].config["params"]
    ratios = Counter()
    for config in found[1:]:
        assert config["trial"] == 3
        assert config["hyperparams"] == members.hyperparams(config["params"])
        for name, distribution in members.distributions.items():
            value = config["params"][name]
            if isinstance(distribution, FloatDistribution):
                assert distribution.low <= value <= distribution.high
                ratios[round(value / best[name], 6)] += 1
            else:
                assert value in distribution.choices
    assert ratios[1.2] > 30
    assert ratios[0.8] > 30


def test_rollouts_that_end_past_the_marks_miss_no_turn():
    # By env steps, the second report would come too early: 4,000 is less than 2,000 after 2,016.
    _, controller, _ = changes(0, rollout=32)
    assert len(controller.taken) == 29  # At the first evaluation there is no checkpoint to take over yet.


def test_changes_repeat_with_the_seed_and_touch_no_global_generator():
    random.seed(1)
    np.random.seed(1)
    outer, outer_numpy = random.getstate(), np.random.get_state()[1].tolist()
    first = changes(5)[2]
    assert random.getstate() == outer
    assert np.random.get_state()[1].tolist() == outer_numpy
    random.seed(2)
    assert changes(5)[2] == first != changes(6)[2]


def test_the_scheduler_can_be_pickled():
    scheduler = build_pbt(members_of("ppo", PPO_ENTRY), MARKS, 0)
    assert isinstance(pickle.loads(pickle.dumps(scheduler)), PopulationBasedTraining)


class Walk(tune.Trainable):
    """The better, the nearer its learning rate is to 0.002; what it has walked is its state."""

    def setup(self, config):
        self.walked, self.steps, self.history = 0.0, 0, []

    def step(self):
        rate = self.config["hyperparams"]["learning_rate"]
        self.walked += rate
        self.steps += 2016
        self.history.append(rate)
        return {
            "timesteps_total": self.steps,
            "mean_reward": self.walked,
            "done": self.steps >= 12_000,
            SHOULD_CHECKPOINT: self.steps % 4032 == 0 and self.steps < 12_000,
            "rates": list(self.history),
            "number": self.config["trial"],
        }

    def save_checkpoint(self, checkpoint_dir):
        (Path(checkpoint_dir) / "state").write_text(repr((self.walked, self.steps, self.history)))

    def load_checkpoint(self, checkpoint):
        walked, steps, history = (Path(checkpoint) / "state").read_text()[1:-1].split(", ", 2)
        self.walked, self.steps = float(walked), int(steps)
        self.history = [float(rate) for rate in history[1:-1].split(", ") if rate]

    def reset_config(self, new_config):
        self.walked, self.steps, self.history = 0.0, 0, []
        return True


class Members(Searcher):
    """Hands out a population."""

    def __init__(self, members, size):
        super().__init__(metric="mean_reward", mode="max")
        self.waiting = list(enumerate(population(members, size)))
        self.members = members

    def suggest(self, trial_id):
        if not self.waiting:
            return Searcher.FINISHED
        number, params = self.waiting.pop(0)
        return {"trial": number, "params": params, "hyperparams": self.members.hyperparams(params)}

    def on_trial_complete(self, trial_id, result=None, error=False):
        """Nothing to keep."""

    def save(self, checkpoint_path):
        Path(checkpoint_path).write_text("")

    def restore(self, checkpoint_path):
        """Nothing to take."""


def test_a_real_run_of_tune_with_more_members_than_room(ray_instance, tmp_path):
    members = members_of("ppo", PPO_ENTRY)
    tuner = tune.Tuner(
        tune.with_resources(Walk, {"CPU": 2}),
        tune_config=tune.TuneConfig(
            metric="mean_reward",
            mode="max",
            search_alg=Members(members, 4),
            scheduler=build_pbt(members, evaluation_marks(12_000, 6, "pbt"), 0),
            num_samples=-1,
            max_concurrent_trials=4,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            storage_path=str(tmp_path),
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=4, checkpoint_at_end=False),
        ),
    )
    results = tuner.fit()
    assert not results.errors
    assert sorted(result.metrics["number"] for result in results) == [0, 1, 2, 3]
    first = {number: params["learning_rate"] for number, params in enumerate(population(members, 4))}
    took_over = 0
    for result in results:
        metrics = result.metrics
        assert metrics["timesteps_total"] >= 12_000
        assert metrics["mean_reward"] == pytest.approx(sum(metrics["rates"]))
        assert metrics["config"]["hyperparams"]["learning_rate"] == metrics["rates"][-1] <= 2e-3
        took_over += metrics["rates"][0] != first[metrics["number"]]
    assert took_over >= 1
    best = max(results, key=lambda result: result.metrics["mean_reward"])
    assert best.metrics["mean_reward"] >= 6 * max(first.values()) * 0.8
