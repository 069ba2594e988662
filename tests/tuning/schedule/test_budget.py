"""The env steps at which trials are evaluated."""

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.tuning.schedule.budget import evaluation_marks, mark_reached


@pytest.mark.parametrize(
    ("n_timesteps", "n_evaluations", "scheduler", "marks"),
    [
        (1000, 4, "median", (250, 500, 750, 1000)),
        (1000, 3, "median", (333, 666, 1000)),
        (3, 10, "median", (1, 2, 3)),
        (1, None, "asha", (1,)),
        (1000, 1, "asha", (1000,)),
        (99_999, None, "median", (99_999,)),
        (99_999, None, "nop", (99_999,)),
        (250_000, None, "none", (125_000, 250_000)),
        (1_000_000, None, "asha", tuple(range(100_000, 1_000_001, 100_000))),
        *(
            (1000, None, name, (200, 400, 600, 800, 1000))
            for name in ("asha", "halving", "successive_halving", "hyperband", "pbt")
        ),
    ],
)
def test_evaluations_are_spread_over_the_budget(n_timesteps, n_evaluations, scheduler, marks):
    assert evaluation_marks(n_timesteps, n_evaluations, scheduler) == marks


@pytest.mark.parametrize(("n_timesteps", "n_evaluations"), [(1000, 0), (1000, -3), (0, 5), (-1, None)])
def test_no_evaluation_and_no_budget_are_refused(n_timesteps, n_evaluations):
    with pytest.raises(ConfigError, match="must be at least 1, not"):
        evaluation_marks(n_timesteps, n_evaluations, "median")


def test_the_mark_that_env_steps_have_reached():
    marks = (10, 20, 30)
    assert [mark_reached(marks, steps) for steps in (0, 9, 10, 19, 20, 29, 30, 99)] == [0, 0, 10, 10, 20, 20, 30, 30]
