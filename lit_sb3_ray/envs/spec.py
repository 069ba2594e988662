"""The recipe of one environment: plain data that can be sent to another process and built there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, get_env_id, load_env_creator, parse_env_id

from lit_sb3_ray.config.problems import reason
from lit_sb3_ray.envs.families import family_of, import_packages, is_minigrid, register_env
from lit_sb3_ray.envs.keywords import accepted_names, check_keywords, takes_any
from lit_sb3_ray.errors import ConfigError, unknown

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec as GymSpec

# Arguments of gymnasium.make itself, which reach no constructor.
_MAKE_ARGUMENTS = ("max_episode_steps", "disable_env_checker")
_MONITOR_ARGUMENTS = ("allow_early_resets", "reset_keywords", "info_keywords", "override_existing")


CONSTRUCTION_ERRORS = (ValueError, AssertionError, AttributeError, TypeError, LookupError, SystemExit, gym.error.Error)
"""What constructors raise for arguments, or for an environment, that they cannot do with; some end the process."""


@dataclass(frozen=True)
class EnvSpec:
    """What one environment is made of, from gymnasium's id outwards.

    Equal specs build equal environments, so whoever keeps built environments can tell whether they still fit.

    Attributes:
        env_id: Id in gymnasium's registry, e.g. `"CartPole-v1"`.
        kwargs: Constructor arguments (`env_kwargs`); `max_episode_steps` and `disable_env_checker` are gymnasium's own.
        wrappers: `gym.Wrapper` classes with their arguments, the innermost first.
        monitor_kwargs: Arguments of SB3's Monitor; see `families.monitor_defaults`.
        packages: Modules to import wherever the environment is built (`--gym-packages`).
        where: The file or flag the arguments came from, for messages.
    """

    env_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[tuple[type[gym.Wrapper], Mapping[str, Any]], ...] = ()
    monitor_kwargs: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    where: str = field(default="", compare=False)

    def check(self) -> GymSpec:
        """Finds what is wrong with the recipe without building anything.

        Returns:
            gymnasium's recipe of the id, registered by now.

        Raises:
            ConfigError: Unknown id, missing package, or an argument that the environment, a wrapper or the monitor does
                not take.
        """
        recipe = register_env(self.env_id, self.packages)
        check_keywords(
            self._creator(recipe),
            self.kwargs,
            what=f"env_kwargs key of {self.env_id}",
            where=self.where,
            preset=recipe.kwargs,
            also=_MAKE_ARGUMENTS,
        )
        steps = self.kwargs.get("max_episode_steps")
        if steps is not None and (type(steps) is not int or not (steps > 0 or steps == -1)):
            raise ConfigError(f"max_episode_steps of {self.env_id}{self._place} must be a positive integer, got {steps!r}")
        for name in self.monitor_kwargs:
            if name not in _MONITOR_ARGUMENTS:
                raise unknown("monitor_kwargs key", name, _MONITOR_ARGUMENTS, self.where)
        for wrapper, arguments in self.wrappers:
            check_keywords(wrapper, arguments, what=f"argument of {wrapper.__name__}", where=self.where, positional=1)
        return recipe

    def takes(self, name: str) -> bool:
        """Tells whether the constructor takes an argument, which one with `**kwargs` may.

        Args:
            name: The argument's name, such as `render_mode`.

        Raises:
            ConfigError: Unknown id, or a missing package.
        """
        creator = self._creator(register_env(self.env_id, self.packages))
        return name in accepted_names(creator) or takes_any(creator)

    def make(self, seed: int | None = None, rank: int = 0) -> gym.Env:
        """Builds the environment: gymnasium's, then SB3's Monitor (without a file), then the wrappers.

        Args:
            seed: Seed of the run; the action space draws from `seed + rank`. The environment itself is seeded by its
                first reset. None leaves both to chance.
            rank: Index of the environment among its siblings.

        Returns:
            The wrapped environment, its render mode left to its own default unless `kwargs` has one.

        Raises:
            ConfigError: As `check`, and for what only shows when the constructor runs.
        """
        return self.build(self.check(), seed, rank)

    def factories(self, n_envs: int, seed: int | None = None) -> list[Callable[[], gym.Env]]:
        """Makes one picklable builder per environment, for a `VecEnv`.

        Each carries gymnasium's recipe along, so an id that was registered here alone can be built anywhere.

        Args:
            n_envs: How many; builder `i` has rank `i`.
            seed: Seed of the run.

        Returns:
            `n_envs` callables without arguments.

        Raises:
            ConfigError: As `check`, or `n_envs` is not positive.
        """
        if n_envs < 1:
            raise ConfigError(f"the number of environments must be at least 1, got {n_envs}")
        recipe = self.check()
        return [EnvFactory(self, recipe, seed, rank) for rank in range(n_envs)]

    def build(self, recipe: GymSpec, seed: int | None, rank: int) -> gym.Env:
        """Builds the environment from gymnasium's recipe, unchecked; `make` finds and checks that by itself."""
        from lit_sb3_ray.envs.exits import GuardedMonitor
        from lit_sb3_ray.envs.keyword_monitor import KeywordMonitor

        with contextlib.ExitStack() as undo:
            env = self._construct(recipe)
            undo.callback(env.close)
            if seed is not None:
                env.action_space.seed(seed + rank)
            lists = ("info_keywords", "reset_keywords")
            options: dict[str, Any] = {
                key: tuple(value) if key in lists else value for key, value in self.monitor_kwargs.items()
            }
            env = KeywordMonitor(env, **options) if options.get("info_keywords") else GuardedMonitor(env, **options)
            for wrapper, arguments in self.wrappers:
                env = self._wrap(env, wrapper, arguments)
            self._check_observations(env)
            undo.pop_all()
        return env

    def _construct(self, recipe: GymSpec) -> gym.Env:
        try:
            env: gym.Env = gym.make(recipe, **self.kwargs)
        except (ImportError, gym.error.DependencyNotInstalled) as error:
            raise self._unavailable(recipe, error) from error
        except TypeError as error:
            name = _refused_keyword(error, self.kwargs)
            if name is None:
                raise self._failed(error) from error
            known = accepted_names(self._creator(recipe)) | set(_MAKE_ARGUMENTS)
            raise unknown(f"env_kwargs key of {self.env_id}", name, known - {name}, self.where) from error
        except ConfigError:
            raise
        except CONSTRUCTION_ERRORS as error:
            raise self._failed(error) from error
        return env

    def _failed(self, error: BaseException) -> ConfigError:
        return ConfigError(f"environment {self.env_id!r} cannot be built: {reason(error)}{self._place}")

    def _wrap(self, env: gym.Env, wrapper: type[gym.Wrapper], arguments: Mapping[str, Any]) -> gym.Env:
        try:
            return wrapper(env, **arguments)
        except (ImportError, gym.error.DependencyNotInstalled) as error:
            raise ConfigError(f"{wrapper.__name__}{self._place} needs a missing package: {error}") from error
        except TypeError as error:
            name = _refused_keyword(error, arguments)
            if name is None:
                raise self.unwrappable(wrapper, error) from error
            known = accepted_names(wrapper) - {name, "env"}
            raise unknown(f"argument of {wrapper.__name__}", name, known, self.where) from error
        except ConfigError:
            raise
        except CONSTRUCTION_ERRORS as error:
            raise self.unwrappable(wrapper, error) from error

    def unwrappable(self, wrapper: type, error: BaseException) -> ConfigError:
        """Explains that a wrapper's constructor does not take the environment, or its arguments."""
        return ConfigError(f"{wrapper.__name__} cannot be put around {self.env_id}{self._place}: {reason(error)}")

    def _check_observations(self, env: gym.Env) -> None:
        """Refuses texts and the like among the observations, which no vectorised environment can hold."""
        space = env.observation_space
        if space.shape is None and not isinstance(space, gym.spaces.Dict):
            raise ConfigError(
                f"the observation of {self.env_id} is a {type(space).__name__}, which no policy takes: "
                f"make it a Box or a Dict by an env_wrapper{self._place}"
            )
        for key, part in space.spaces.items() if isinstance(space, gym.spaces.Dict) else ():
            if part.shape is None:
                such = ", such as minigrid.wrappers.FlatObsWrapper" if is_minigrid(self.env_id) else ""
                raise ConfigError(
                    f"the observation of {self.env_id} holds {key!r}, which is {type(part).__name__} and no array: "
                    f"leave it out by an env_wrapper{such}"
                )

    def _creator(self, recipe: GymSpec) -> Callable[..., Any]:
        if recipe.entry_point is None:
            raise ConfigError(f"environment {self.env_id!r} has no entry point for a single environment")
        if callable(recipe.entry_point):
            return recipe.entry_point
        try:
            return load_env_creator(recipe.entry_point)
        except (ImportError, AttributeError, gym.error.DependencyNotInstalled) as error:
            raise self._unavailable(recipe, error) from error

    def _unavailable(self, recipe: GymSpec, error: Exception) -> ConfigError:
        """Explains an environment that is registered but whose code cannot be loaded."""
        family = family_of(recipe)
        namespace, name, version = parse_env_id(self.env_id)
        newest = find_highest_version(namespace, name)
        if version is not None and newest is not None and newest > version:
            hint = f"; there is {get_env_id(namespace, name, newest)!r}"
        else:
            hint = f"; {family.install}" if family is not None else ""
        reason = str(error).split("\n", maxsplit=1)[0].rstrip(".")
        return ConfigError(f"environment {self.env_id!r} cannot be built: {reason}{hint}")

    @property
    def _place(self) -> str:
        return f" ({self.where})" if self.where else ""


@dataclass(frozen=True)
class EnvFactory:
    """Builds one environment of a recipe, in this process or in another."""

    spec: EnvSpec
    recipe: GymSpec
    seed: int | None
    rank: int

    def __call__(self) -> gym.Env:
        """Imports what the environment needs and builds it."""
        import_packages(self.spec.packages)
        return self.spec.build(self.recipe, self.seed, self.rank)


def _refused_keyword(error: TypeError, given: Mapping[str, Any]) -> str | None:
    """Returns the keyword a TypeError complains of, if it is one of those given."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    return found[1] if found and found[1] in given else None
