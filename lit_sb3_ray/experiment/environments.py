"""The hyperparameters and the envs of one experiment, before there is a model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from lit_sb3_ray.config.algorithms import nearest_built_in
from lit_sb3_ray.config.hyperparams import Hyperparams, merge, origins, resolve
from lit_sb3_ray.config.plain import copy_containers
from lit_sb3_ray.envs import families
from lit_sb3_ray.envs.candidates import playing_candidates
from lit_sb3_ray.envs.monitor import MonitorFiles
from lit_sb3_ray.envs.spec import EnvSpec
from lit_sb3_ray.envs.vector import build_vec_env
from lit_sb3_ray.experiment import run_folder
from lit_sb3_ray.experiment.entries import file_entry, saved_entry
from lit_sb3_ray.experiment.evaluation_envs import check_same_form
from lit_sb3_ray.experiment.fitting import check_fit
from lit_sb3_ray.experiment.learner_recipe import check_number
from lit_sb3_ray.experiment.origin import is_trusted_model
from lit_sb3_ray.experiment.run_folder import RunFolder
from lit_sb3_ray.experiment.settings import ExperimentSettings
from lit_sb3_ray.experiment.shares import check_callbacks, share
from lit_sb3_ray.experiment.stepping import EnvSet, Stepping, env_sets, plan
from lit_sb3_ray.experiment.warm_start import warm_statistics
from lit_sb3_ray.lit.evaluation import evaluation_seed, own_random_stream
from lit_sb3_ray.lit.refusals import reason

if TYPE_CHECKING:
    from lit_sb3_ray.experiment.remote_evaluator import RemoteEvaluator

logger = logging.getLogger(__name__)


class ExperimentEnvs(ExperimentSettings):
    """Reads an experiment's hyperparameters and builds its envs.

    Attributes:
        default_vec_env_cls: Set in a subclass to step envs with another `VecEnv` class.
        n_envs: Training envs, of each learner.
        saved_hyperparams: The unprocessed hyperparameters, once read.
        trial_hyperparams: The hyperparameters of the trial that this experiment is, if it is one; they go over the file's.
        resumed_extra: What the checkpoint that is gone on from says of the run's files.
    """

    default_vec_env_cls: type[VecEnv] | None = None

    def _begin(self) -> None:
        self.trial_hyperparams: dict[str, Any] | None = None
        self.n_envs = self.given_n_envs or 1
        self.saved_hyperparams: dict[str, Any] = {}
        self.vec_env_kwargs: dict[str, Any] = {}
        self.resumed_extra: dict[str, Any] = {}
        self._steppings: dict[EnvSet, Stepping] = {}
        self._resolved: Hyperparams | None = None

    # Hyperparameters

    def read_hyperparameters(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reads the hyperparameters: the file's entry, over it a trial's, over both those given.

        Returns:
            Two copies: one to work on, and the one to be saved, sorted by key.

        Raises:
            ConfigError: The file, the entry, or a value in it is wrong.
        """
        trial = None
        if self.checkpoint is not None:
            raw, where = saved_entry(self)
            overrides = None
        else:
            entry, where = file_entry(self)
            trial = self._trial()
            raw = merge(entry, trial, self.custom_hyperparams)
            overrides = self.custom_hyperparams
        resolved = resolve(raw, self.algo, where, n_timesteps=self.n_timesteps, sources=origins(trial, overrides))
        self._resolved = share(resolved, self.given_n_envs or resolved.n_envs, self.devices)
        check_callbacks([*resolved.callbacks, *self.callbacks], self.devices)
        check_number(self.checkpoint, self.devices)
        self.saved_hyperparams = resolved.saved
        self.n_envs = self._resolved.n_envs
        self.env_spec(eval_env=False).check()
        self.env_spec(eval_env=True).check()
        return copy_containers(raw), dict(resolved.saved)

    def entry(self) -> dict[str, Any]:
        """The file's hyperparameters for the env, unprocessed."""
        return file_entry(self)[0]

    @property
    def hyperparams(self) -> Hyperparams:
        """The resolved hyperparameters."""
        if self._resolved is None:
            self.read_hyperparameters()
        assert self._resolved is not None
        return self._resolved

    def get_env_kwargs(self, eval_env: bool = False) -> dict[str, Any]:
        """The env's constructor arguments: the file's, over them those given.

        Args:
            eval_env: For evaluation envs, whose own arguments stand in for those of training if there are any.
        """
        given = self.eval_env_kwargs if eval_env and self.eval_env_kwargs else self.env_kwargs
        return {**self.hyperparams.env_kwargs, **given}

    def load_trial(
        self,
        storage: str | int | None = None,
        study_name: str | None = None,
        trial_id: int | None = None,
        convert: bool = True,
    ) -> dict[str, Any]:
        """Loads a trial of a study.

        Args:
            storage: The study's storage; None for the manager's. A number alone is a `trial_id`.
            study_name: The study's name; None for the manager's.
            trial_id: The trial's number, from 0; None for the best trial.
            convert: Make hyperparameters of what the trial has drawn.

        Returns:
            The trial's hyperparameters, to go over the file's; or what it has drawn, by the names of the search space.

        Raises:
            ConfigError: There is no such storage, study or trial.
        """
        from lit_sb3_ray.tuning.rows import HYPERPARAMS
        from lit_sb3_ray.tuning.space.conversion import convert as to_hyperparams
        from lit_sb3_ray.tuning.storage import find_trial

        if isinstance(storage, int):
            storage, trial_id = None, storage
        trial = find_trial(storage or self.storage, study_name or self.study_name, trial_id, self.algo)
        if not convert:
            return trial.params
        if HYPERPARAMS in trial.user_attrs:
            # A study's budget is often a short one; how long to train is for the file or the command line to say.
            return {name: value for name, value in trial.user_attrs[HYPERPARAMS].items() if name != "n_timesteps"}
        return to_hyperparams(self.algo, trial.params, self.entry(), self.custom_hyperparams, self.given_n_envs)

    # Folders

    @property
    def run(self) -> RunFolder:
        """The run folder; claimed, that is created, when first asked for."""
        if self._run is None:
            self._run = run_folder.claim(self.log_folder, self.algo, self.env_id, self.uuid_str)
        return self._run

    @property
    def save_path(self) -> str:
        """The run folder's path."""
        return str(self.run.path)

    @property
    def params_path(self) -> str:
        """The path of the run's settings."""
        return str(self.run.settings)

    def create_log_folder(self) -> None:
        """Makes the run folder."""
        self.run.settings.mkdir(parents=True, exist_ok=True)

    # Envs

    def create_envs(self, n_envs: int, eval_env: bool = False, no_log: bool = False) -> VecEnv:
        """Builds envs with everything around them.

        Args:
            n_envs: How many.
            eval_env: For evaluation: no monitor files, statistics frozen, rewards as they are.
            no_log: No monitor files.

        Returns:
            The outermost wrapper.
        """
        files = None if eval_env or no_log else MonitorFiles(self.run.path, self.resumed_extra.get("monitor"), self.devices)
        stepping = self._stepping_of(EnvSet(n_envs, eval_env))
        # A constructor may draw from the global generators; training draws the same with and without evaluation.
        with own_random_stream(None) if eval_env else nullcontext():
            return build_vec_env(
                self._playing_spec(n_envs) if not eval_env else self.env_spec(eval_env=True),
                n_envs,
                seed=evaluation_seed(self.seed, 0) if eval_env else self._env_seed(),
                vec_env_cls=stepping.vec_env_cls,
                vec_env_kwargs=stepping.kwargs,
                monitor=files,
                **self._env_stack(eval_env),
            )

    def try_fit(self) -> None:
        """Tries the algorithm against the spaces of an env, which is built for that, before anything is written.

        Evaluation envs with arguments of their own are tried against those of training, too.

        Where no env is to be in this process, that is left to whoever makes the model.

        Raises:
            ConfigError: The env cannot be built, or the hyperparameters do not suit it.
        """
        if self.env_timeout is not None or self.default_vec_env_cls is not None:
            return
        with self._tried_env(eval_env=True) as env:
            check_fit(self.hyperparams, self.env_id, env.observation_space, env.action_space)
            if self.eval_env_kwargs:
                with self._tried_env(eval_env=False) as training:
                    check_same_form(training, env)

    def uses_masking(self, env: VecEnv | None) -> bool:
        """Whether training asks the envs for action masks: as the hyperparameters say, else if they have any."""
        asked = self.hyperparams.use_masking
        return asked if asked is not None else env is not None and env.has_attr("action_masks")

    def env_spec(self, eval_env: bool) -> EnvSpec:
        """The recipe of one env, of training or of evaluation."""
        resolved = self.hyperparams
        return EnvSpec(
            self.env_id,
            self.get_env_kwargs(eval_env),
            resolved.env_wrappers,
            families.monitor_defaults(self.env_id, resolved.monitor_kwargs),
            self.gym_packages,
            where="env_kwargs",
        )

    # Families of envs

    entry_point = staticmethod(families.entry_point)
    is_atari = staticmethod(families.is_atari)
    is_minigrid = staticmethod(families.is_minigrid)
    is_bullet = staticmethod(families.is_bullet)
    is_robotics_env = staticmethod(families.is_robotics_env)
    is_panda_gym = staticmethod(families.is_panda_gym)

    # Inside

    def _trial(self) -> dict[str, Any] | None:
        """The hyperparameters of the trial that this is or that is asked for; a study named without a trial means its best."""
        asked = self.trial_id is not None or self.storage or self.study_name
        if self.trial_hyperparams is not None or self.optimize_hyperparameters or not asked:
            return self.trial_hyperparams
        return self.load_trial(self.storage, self.study_name, self.trial_id)

    def _playing_spec(self, n_envs: int) -> EnvSpec:
        """The recipe of one of some training envs; ARS lets candidates play in several of them at the same time."""
        spec = self.env_spec(eval_env=False)
        is_shared = n_envs > 1 and nearest_built_in(self.algo) == "ars"
        return playing_candidates(spec, self._env_stack(eval_env=False)) if is_shared else spec

    @contextmanager
    def _tried_env(self, eval_env: bool) -> Iterator[VecEnv]:
        """One env for a look at it, in this process; nothing of what is random changes."""
        env = None
        try:
            with own_random_stream(None):
                env = build_vec_env(self.env_spec(eval_env), 1, seed=self.seed, **self._env_stack(eval_env))
            yield env
        finally:
            close_env(env)

    def _check_evaluation_envs(self, training: VecEnv | None, evaluation: VecEnv | RemoteEvaluator | None) -> None:
        """Tries evaluation envs with arguments of their own against those of training."""
        if not self.eval_env_kwargs or training is None:
            return
        if isinstance(evaluation, VecEnv):
            check_same_form(training, evaluation)
        elif evaluation is not None and self.default_vec_env_cls is None and self.env_timeout is None:
            # What its actor has built would show only at the first evaluation.
            with self._tried_env(eval_env=True) as alike:
                check_same_form(training, alike)
        elif evaluation is None:
            logger.warning("--eval-env-kwargs has no effect: there are no evaluations (--eval-freq %d)", self.eval_freq)

    def _env_stack(self, eval_env: bool) -> dict[str, Any]:
        """The vectorised wrappers around the envs, as `build_vec_env` takes them."""
        resolved = self.hyperparams
        statistics = warm_statistics(self.trained_agent, self.env_id) if self.is_warm_start else None
        return {
            "vec_env_wrappers": resolved.vec_env_wrappers,
            "normalize": resolved.normalize,
            "training": not eval_env,
            "frame_stack": resolved.frame_stack,
            "stats_path": None if statistics is None else statistics.absolute(),
            "stats_trusted": statistics is None or is_trusted_model(self.trained_agent),
        }

    def _stepping_of(self, envs: EnvSet) -> Stepping:
        """What steps some envs; decided once for all that the experiment has, before any of them is built."""
        if envs not in self._steppings:
            sets = env_sets(self)
            self._steppings.update(plan(self, sets if envs in sets else (envs,)))
        return self._steppings[envs]

    def _env_seed(self) -> int:
        """The seed of the training envs; a resumed run draws another, or it would play the same episodes again."""
        if self.checkpoint is None:
            return self.seed
        return int(np.random.SeedSequence([self.seed, 0x5E5E, int(self.checkpoint.name)]).generate_state(1)[0] // 2)


def close_env(env: VecEnv | RemoteEvaluator | None) -> None:
    """Closes envs if there are any; what they raise is told, and ends nothing."""
    if env is None:
        return
    try:
        env.close()
    except (
        Exception,
        SystemExit,
    ) as error:  # An env may raise anything, or exit; what was trained is worth more.
        logger.warning("An environment cannot be closed: %s", reason(error), exc_info=True)
