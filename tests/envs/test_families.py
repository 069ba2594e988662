"""An id is registered by importing no more than it needs, and what is missing or misspelt is told in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import tiny_envs  # noqa: F401 (registers the tiny environments)
from lit_sb3_ray.envs import families
from lit_sb3_ray.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


FAKES = ("MiniGrid-Fake-v0", "highway-fake-v0", "Strange-v0", "Theirs-v0", "Some-v0", "parking-fake-v0", "PandaFake-v3")


@pytest.fixture
def registry():
    """Gymnasium's registry, put back afterwards; what a real package added stays, for it is imported only once."""
    before = dict(gym.registry)
    yield gym.registry
    gym.registry.update(before)
    for env_id in FAKES:
        gym.registry.pop(env_id, None)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Puts a package on the path whose import registers environments; returns the function that writes it."""
    written = []
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, *ids, head=""):
        for module in [module for module in sys.modules if module.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        lines = [head, "import gymnasium as gym"]
        lines += [f"gym.register(id={env_id!r}, entry_point='{point}')" for env_id, point in ids]
        (tmp_path / f"{name}.py").write_text("\n".join(lines) + "\n")
        written.append(name)

    yield write
    for name in written:
        sys.modules.pop(name, None)


def run(code, *path):
    """Runs code in a fresh interpreter; returns what it printed."""
    lines = [f"import sys; sys.path[:0] = {[str(ROOT), *map(str, path)]!r}", code]
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout


def test_looking_up_an_id_loads_neither_torch_nor_sb3_nor_an_optional_package():
    code = """
import lit_sb3_ray.envs
assert 'gymnasium' not in sys.modules
lit_sb3_ray.envs.register_env('CartPole-v1')
lit_sb3_ray.envs.register_env('PendulumNoVel-v1')
from lit_sb3_ray.envs.spec import EnvSpec
EnvSpec('CartPole-v1').check()
heavy = {'torch', 'stable_baselines3', 'sb3_contrib', 'mujoco', 'Box2D', 'cv2', 'ale_py', 'minigrid', 'pandas', 'ray'}
print(sorted(heavy & set(sys.modules)))
"""
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("env_id", ["CartPoleNoVel-v1", "LunarLanderNoVel-v3", "LunarLanderContinuousNoVel-v3"])
def test_novel_ids_are_registered_when_asked_for(env_id, registry):
    registry.pop(env_id, None)
    assert families.register_env(env_id).id == env_id
    assert "novel" in families.entry_point(env_id)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("CartPol-v1", "CartPole-v1"), ("pendulum-v1", "Pendulum-v1"), ("LunarLanderNoVel-v2", "LunarLanderNoVel-v3")],
)
def test_an_unknown_id_names_the_nearest(wrong, right, registry):
    with pytest.raises(ConfigError, match=f"unknown environment '{wrong}'.*'{right}'"):
        families.register_env(wrong)


def test_gymnasiums_module_prefix_points_to_gym_packages():
    with pytest.raises(ConfigError, match="--gym-packages my_envs --env Mine-v0"):
        families.register_env("my_envs:Mine-v0")


@pytest.mark.parametrize(
    ("env_id", "module", "install"),
    [
        ("ALE/Pong-v5", "ale_py", "'lit-sb3-ray[atari]'"),
        ("BreakoutNoFrameskip-v4", "ale_py", "'lit-sb3-ray[atari]'"),
        ("MiniGrid-Empty-8x8-v0", "minigrid", "'lit-sb3-ray[minigrid]'"),
        ("HalfCheetahBulletEnv-v0", "pybullet_envs_gymnasium", "'lit-sb3-ray[bullet]'"),
        ("MinitaurBulletDuckEnv-v0", "pybullet_envs_gymnasium", "'lit-sb3-ray[bullet]'"),
        ("parking-v0", "highway_env", "'lit-sb3-ray[highway]'"),
        ("PandaReach-v3", "panda_gym", "'lit-sb3-ray[panda]'"),
        ("FetchReach-v4", "gymnasium_robotics", "'lit-sb3-ray[robotics]'"),
        ("donkey-generated-track-v0", "gym_donkeycar", "donkeycar"),
        ("RocketLander-v0", "rocket_lander_gym", "repository"),
        ("A1Walking-v0", "custom_envs", "private"),
    ],
)
def test_a_missing_package_names_its_extra(env_id, module, install, registry, monkeypatch):
    monkeypatch.setattr(families, "_installed", lambda family: family.module != module)
    registry.pop(env_id, None)
    with pytest.raises(ConfigError) as refused:
        families.register_env(env_id)
    assert f"needs the package {module}, which is not installed" in str(refused.value)
    assert install in str(refused.value)


@pytest.mark.parametrize(("env_id", "extra"), [("LunarLander-v3", "box2d"), ("Ant-v5", "mujoco")])
def test_gymnasiums_own_ids_may_lack_their_engine(env_id, extra, monkeypatch):
    monkeypatch.setattr(families, "_installed", lambda family: False)
    with pytest.raises(ConfigError, match=rf"lit-sb3-ray\[{extra}\]"):
        families.register_env(env_id)


def test_the_package_an_id_points_to_is_imported_and_no_other(registry, package):
    package("minigrid", ("MiniGrid-Fake-v0", "minigrid.envs:Fake"))
    package("highway_env", ("highway-fake-v0", "highway_env.envs.fake:Fake"), head="raise ImportError('not wanted')")
    assert families.register_env("MiniGrid-Fake-v0").id == "MiniGrid-Fake-v0"
    assert families.is_minigrid("MiniGrid-Fake-v0")
    assert "highway_env" not in sys.modules
    with pytest.raises(ConfigError, match="highway_env cannot be imported: not wanted"):
        families.register_env("highway-fake-v0")


def test_an_id_without_a_known_form_is_looked_for_in_all_packages(registry, package, caplog):
    package("highway_env", head="raise ImportError('broken')")
    package("panda_gym", ("Strange-v0", "panda_gym.envs:Strange"))
    assert families.register_env("Strange-v0").id == "Strange-v0"
    assert "highway_env" in caplog.text


def test_a_package_that_fails_in_any_way_is_told_or_left_out(registry, package, caplog):
    package("highway_env", head="import numpy; numpy.no_such_type")
    reason = "highway_env cannot be imported: AttributeError: module 'numpy' has no attribute 'no_such_type'"
    with pytest.raises(ConfigError, match=reason):
        families.register_env("highway-fake-v0")
    with pytest.raises(ConfigError, match="unknown environment 'Strange-v0'"):
        families.register_env("Strange-v0")
    assert "the environments of highway_env are left out" in caplog.text


def test_gym_packages_are_imported_first(registry, package):
    package("their_envs", ("Theirs-v0", "tiny_envs:CountEnv"))
    with pytest.raises(ConfigError):
        families.register_env("Theirs-v0")
    assert families.register_env("Theirs-v0", ["their_envs"]).id == "Theirs-v0"


def test_a_missing_gym_package_is_named():
    with pytest.raises(ConfigError, match="--gym-packages no_such_envs: cannot be imported: No module named 'no_such_envs'"):
        families.register_env("CartPole-v1", ["no_such_envs"])


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("ale_py.env:AtariEnv", {"atari"}),
        ("minigrid.envs:EmptyEnv", {"minigrid"}),
        ("pybullet_envs_gymnasium.gym_locomotion_envs:AntBulletEnv", {"bullet"}),
        ("panda_gym.envs:PandaReachEnv", {"panda_gym", "robotics_env", "success"}),
        ("gymnasium_robotics.envs.fetch.reach:MujocoFetchReachEnv", {"robotics_env", "success"}),
        ("gymnasium_robotics.envs.shadow_dexterous_hand.reach:MujocoHandReachEnv", {"robotics_env", "success"}),
        ("gymnasium_robotics.envs.maze.point_maze:PointMazeEnv", {"robotics_env"}),
        ("gym.envs.robotics:FetchReachEnv", {"robotics_env", "success"}),
        ("gymnasium.envs.classic_control.cartpole:CartPoleEnv", set()),
    ],
)
def test_families_are_told_by_the_entry_point(point, expected, registry):
    gym.register(id="Some-v0", entry_point=point)
    names = ("atari", "minigrid", "bullet", "panda_gym", "robotics_env")
    found = {name for name in names if getattr(families, f"is_{name}")("Some-v0")}
    found |= {"success"} if families.reports_success("Some-v0") else set()
    assert found == expected
    assert families.entry_point("Some-v0") == point


def test_a_family_can_be_asked_for_an_id_that_is_not_registered_yet(registry, package):
    package("minigrid", ("MiniGrid-Fake-v0", "minigrid.envs:Fake"))
    assert families.is_minigrid("MiniGrid-Fake-v0")


def test_the_entry_point_of_an_unknown_id_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigError, match="CartPole-v1"):
        families.is_atari("CartPole-v9")


def test_goal_tasks_log_success_unless_the_configuration_says_what_to_log(registry):
    gym.register(id="parking-fake-v0", entry_point="highway_env.envs.parking_env:ParkingEnv")
    gym.register(id="PandaFake-v3", entry_point="panda_gym.envs:PandaReachEnv")
    given = {"allow_early_resets": False}
    for env_id in ("parking-fake-v0", "PandaFake-v3"):
        assert families.monitor_defaults(env_id, {}) == {"info_keywords": ("is_success",)}
        assert families.monitor_defaults(env_id, given) == {"info_keywords": ("is_success",), "allow_early_resets": False}
        assert families.monitor_defaults(env_id, {"info_keywords": ("crashed",)}) == {"info_keywords": ("crashed",)}
    assert families.monitor_defaults("CartPole-v1", given) == given
    assert given == {"allow_early_resets": False}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('first\\nsecond')", "RuntimeError: first second"),
        ("import sys; sys.exit('no licence')", "SystemExit: no licence"),
        ("def", "SyntaxError: "),
    ],
)
def test_a_gym_package_that_fails_is_one_line(code, reason, package):
    package("failing_envs", head=code)
    with pytest.raises(ConfigError, match=f"--gym-packages failing_envs: cannot be imported: {reason}") as caught:
        families.import_packages(["failing_envs"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "..x"])
def test_a_gym_package_without_a_name_is_refused(name):
    with pytest.raises(ConfigError, match=f"--gym-packages '{name}': expected the name of a module"):
        families.import_packages([name])


@pytest.mark.parametrize(("env_id", "packages", "hinted"), [("Wholly-Own-v3", (), True), ("CartPol-v1", (), False)])
def test_an_unknown_id_far_from_all_others_points_to_gym_packages(env_id, packages, hinted):
    with pytest.raises(ConfigError, match="unknown environment") as caught:
        families.register_env(env_id, packages)
    assert ("--gym-packages" in str(caught.value)) is hinted
