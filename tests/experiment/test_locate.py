"""Run folders and models are found by path alone, and errors list what there is."""

import os
import zipfile

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment import locate

FIRST = "0f8fad5b-d9cb-469f-a165-70867728950e"
SECOND = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.fixture
def logs(tmp_path):
    def make(name, *files, algo="ppo"):
        run = tmp_path / algo / name
        run.mkdir(parents=True)
        for file in files:
            (run / file).touch()
        return run

    make.root = tmp_path
    return make


@pytest.mark.parametrize(
    ("env_id", "name"), [("CartPole-v1", "CartPole-v1"), ("ALE/Pong-v5", "ALE-Pong-v5"), ("my.package:Env/A-v0", "Env-A-v0")]
)
def test_env_folder_name(env_id, name):
    assert locate.env_folder_name(env_id) == name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("CartPole-v1_12", ("CartPole-v1", 12)),
        (f"CartPole-v1_3_{FIRST}", ("CartPole-v1", 3)),
        ("my_env_v2_1", ("my_env_v2", 1)),
        ("CartPole-v1_1_12345678", ("CartPole-v1", 1)),
        ("CartPole-v1", None),
        ("CartPole-v1_study_1x", None),
    ],
)
def test_the_name_of_a_run_folder_is_taken_apart(name, parts):
    assert locate.split_run_folder(name) == parts


def test_two_colons_are_refused():
    with pytest.raises(ConfigError, match="more than one ':'"):
        locate.env_folder_name("a:b:c")


def test_latest_run_is_the_greatest_number_not_the_last_word(logs):
    for number in (2, 10, 9):
        logs(f"CartPole-v1_{number}")
    logs("CartPole-v1_11_old")
    logs("MountainCar-v0_30")
    (logs.root / "ppo" / "CartPole-v1_99").touch()
    assert locate.find_run(logs.root, "ppo", "CartPole-v1").name == "CartPole-v1_10"
    assert locate.find_run(logs.root, "ppo", "CartPole-v1", 9).name == "CartPole-v1_9"


def test_an_algorithm_given_by_path_has_a_folder_without_colons(logs):
    logs("CartPole-v1_1", algo="my.module-Class")
    assert locate.find_run(logs.root, "my.module:Class", "CartPole-v1").name == "CartPole-v1_1"


def test_an_env_s_name_is_no_pattern(logs):
    logs("Env[ab]-v0_1")
    logs("Enva-v0_2")
    assert locate.find_run(logs.root, "ppo", "Env[ab]-v0").name == "Env[ab]-v0_1"


def test_one_env_s_runs_are_not_another_s(logs):
    logs("MountainCarContinuous-v0_4")
    logs("MountainCar-v0_1")
    assert locate.find_run(logs.root, "ppo", "MountainCar-v0").name == "MountainCar-v0_1"


def test_runs_with_unique_ids_are_addressed_by_them(logs):
    logs("CartPole-v1_1")
    first = logs(f"CartPole-v1_1_{FIRST}")
    second = logs(f"CartPole-v1_1_{SECOND}")
    for word in (FIRST, FIRST[:6], FIRST.upper(), f"1_{FIRST}", first.name):
        assert locate.find_run(logs.root, "ppo", "CartPole-v1", word) == first
    assert locate.find_run(logs.root, "ppo", "CartPole-v1", "7c9e") == second
    assert locate.find_run(logs.root, "ppo", "CartPole-v1", "1").name == "CartPole-v1_1"


def test_a_number_that_several_runs_have_lists_their_ids(logs):
    logs(f"CartPole-v1_1_{FIRST}")
    logs(f"CartPole-v1_1_{SECOND}")
    with pytest.raises(ConfigError, match=f"more than one run .* id 1 .*1_{FIRST}.*1_{SECOND}"):
        locate.find_run(logs.root, "ppo", "CartPole-v1", 1)


def test_the_latest_of_one_number_is_the_one_written_to_last(logs):
    os.utime(logs(f"CartPole-v1_1_{FIRST}"), (2000, 2000))
    os.utime(logs(f"CartPole-v1_1_{SECOND}"), (1000, 1000))
    assert locate.find_run(logs.root, "ppo", "CartPole-v1").name.endswith(FIRST)


def test_a_negative_id_means_no_run_folder(logs):
    logs("CartPole-v1_1")
    assert locate.find_run(logs.root, "ppo", "CartPole-v1", -1) == logs.root / "ppo"


def test_without_run_folders_a_model_beside_them_is_found(logs):
    logs(".", "CartPole-v1.zip")
    assert locate.find_run(logs.root, "ppo", "CartPole-v1") == logs.root / "ppo"


@pytest.mark.parametrize(
    ("algo", "env_id", "exp_id", "part"),
    [
        ("sac", "CartPole-v1", 0, "no runs of sac.*: it holds ppo"),
        ("pop", "CartPole-v1", 0, "no runs of pop.*did you mean 'ppo'. it holds ppo"),
        ("ppo", "catpole-v1", 0, "no run of ppo on catpole-v1.*did you mean 'CartPole-v1'. it holds CartPole-v1_1"),
        ("ppo", "Acrobot-v1", 0, "no run of ppo on Acrobot-v1.*: it holds CartPole-v1_1, CartPole-v1_2"),
        ("ppo", "CartPole-v1", 7, "no run .* id 7 .*ids are 1, 2"),
        ("ppo", "CartPole-v1", "abc", "no run .* id abc .*ids are 1, 2"),
    ],
)
def test_errors_list_what_there_is(logs, algo, env_id, exp_id, part):
    logs("CartPole-v1_1")
    logs("CartPole-v1_2")
    with pytest.raises(ConfigError, match=part):
        locate.find_run(logs.root, algo, env_id, exp_id)


def test_a_missing_log_folder(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        locate.find_run(tmp_path / "none", "ppo", "CartPole-v1")


def test_which_model_the_flags_mean(logs):
    run = logs("CartPole-v1_1", "rl_model_900_steps.zip", "rl_model_10000_steps.zip", "rl_model_x_steps.zip")
    assert locate.which_model(run) == "final"
    assert locate.which_model(run, load_checkpoint=900) == 900
    assert locate.which_model(run, load_last_checkpoint=True) == 10000
    assert locate.which_model(run, load_best=True, load_checkpoint=900, load_last_checkpoint=True) == "best"
    assert list(locate.list_checkpoints(run)) == [900, 10000]


def test_no_checkpoint(logs):
    run = logs("CartPole-v1_1", "best_model.zip")
    with pytest.raises(ConfigError, match=r"no checkpoint .*models there are best_model\.zip"):
        locate.which_model(run, load_last_checkpoint=True)


def test_model_files(logs):
    run = logs("ALE-Pong-v5_1", "ALE-Pong-v5.zip", "best_model.zip", "rl_model_900_steps.zip")
    assert locate.find_model(run, "ALE/Pong-v5").name == "ALE-Pong-v5.zip"
    assert locate.find_model(run, "ALE/Pong-v5", "best").name == "best_model.zip"
    assert locate.find_model(run, "ALE/Pong-v5", 900).name == "rl_model_900_steps.zip"
    with pytest.raises(ConfigError, match=r"no rl_model_5_steps\.zip .*models there are ALE-Pong-v5\.zip, best_model\.zip"):
        locate.find_model(run, "ALE/Pong-v5", 5)


def test_the_models_of_a_run_that_is_not_over_are_told_newest_first_with_the_flag_for_them(logs):
    run = logs("CartPole-v1_1", "best_model.zip", "rl_model_900_steps.zip", "rl_model_10000_steps.zip")
    newest = r"best_model\.zip, rl_model_10000_steps\.zip, rl_model_900_steps\.zip; --load-last-checkpoint takes the newest"
    with pytest.raises(ConfigError, match=newest):
        locate.find_model(run, "CartPole-v1")


def test_where_there_is_a_study_alone_the_way_to_a_run_is_told(logs):
    study = logs("CartPole-v1_study_1")
    with pytest.raises(ConfigError, match=f"no run of ppo on CartPole-v1 .* `train --from-study {study}` trains"):
        locate.find_run(study.parent.parent, "ppo", "CartPole-v1")


def test_settings_are_in_the_one_sub_folder_with_them(logs):
    run = logs("CartPole-v1_1")
    with pytest.raises(ConfigError, match="not a run folder: no folder"):
        locate.find_settings(run)
    (run / "videos").mkdir()
    (run / "CartPole-v1").mkdir()
    (run / "CartPole-v1" / "config.yml").touch()
    assert locate.find_settings(run) == run / "CartPole-v1"
    (run / "Acrobot-v1").mkdir()
    (run / "Acrobot-v1" / "args.yml").touch()
    with pytest.raises(ConfigError, match="several folders"):
        locate.find_settings(run)
    assert locate.find_settings(run, "CartPole-v1") == run / "CartPole-v1"
    with pytest.raises(ConfigError, match=r"no run folder .*beside it are CartPole-v1_1"):
        locate.find_settings(run.with_name("CartPole-v1_2"))


def test_what_cannot_be_a_model_file(tmp_path):
    with pytest.raises(ConfigError, match=r"-i 'model\.pth': a model's file name ends in \.zip"):
        locate.check_model_file("model.pth", "-i")
    with pytest.raises(ConfigError, match="no such file"):
        locate.check_model_file(str(tmp_path / "model.zip"), "-i")
    (tmp_path / "model.zip").write_text("no zip")
    with pytest.raises(ConfigError, match="not a zip archive"):
        locate.check_model_file(str(tmp_path / "model.zip"), "-i")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    locate.check_model_file(str(tmp_path / "model.zip"), "-i")


def test_a_run_folder_or_a_model_in_the_wrong_place_is_told(tmp_path):
    run = tmp_path / "logs" / "ppo" / "CartPole-v1_3"
    (run / "CartPole-v1").mkdir(parents=True)
    (run / "CartPole-v1" / "config.yml").write_text("{}")
    with pytest.raises(ConfigError, match=r"is a run folder: give the log folder instead, -f .*logs --exp-id 3"):
        locate.find_run(run, "ppo", "CartPole-v1")
    with pytest.raises(ConfigError, match="there is no folder"):
        locate.find_run(tmp_path / "none", "ppo", "CartPole-v1")
    with pytest.raises(ConfigError, match="is a model: give its run folder"):
        locate.find_settings(run / "CartPole-v1.zip")
