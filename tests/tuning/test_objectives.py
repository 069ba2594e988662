"""What a trial is worth, of its evaluations."""

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.objectives import check_objective, objective_value

# As a mapping may have them: not in the order of their env steps.
VALUES = {60: 2.0, 20: 9.0, 40: 1.0, 80: 3.0}


@pytest.mark.parametrize(
    ("objective", "value"),
    [("last", 3.0), ("best", 9.0), ("mean:1", 3.0), ("mean:2", 2.5), ("mean:3", 2.0), ("mean:4", 3.75), ("mean:9", 3.75)],
)
def test_the_value_of_a_trial(objective, value):
    assert objective_value(check_objective(objective), VALUES) == value


@pytest.mark.parametrize("objective", ["", "first", "last:1", "best:", "mean", "mean:", "mean:0", "mean:-1", "mean:x"])
def test_anything_else_is_refused_by_name(objective):
    with pytest.raises(ConfigError, match="is none of last, best, mean:K") as error:
        check_objective(objective)
    assert repr(objective) in str(error.value)


def test_more_evaluations_than_there_are_are_refused_with_the_numbers():
    assert check_objective("mean:5", 5) == "mean:5"
    with pytest.raises(ConfigError, match=r"--objective mean:99: a trial has 5 evaluations \(--n-evaluations\)"):
        check_objective("mean:99", 5)
    with pytest.raises(ConfigError, match=r"--objective mean:2: a trial has 1 evaluation \("):
        check_objective("mean:2", 1)
