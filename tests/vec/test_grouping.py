"""How environments are split."""

from __future__ import annotations

import pytest

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.vec.grouping import group


def sizes(grouping):
    """Sizes of the learner's share and of the actors'."""
    return len(grouping.inline), [len(rows) for rows in grouping.actors]


@pytest.mark.parametrize(
    ("n_envs", "envs_per_actor", "cores", "inline", "expected"),
    [
        (8, 1, 2, True, (0, [1] * 8)),
        (8, 3, 2, True, (0, [3, 3, 2])),
        (8, 100, 2, True, (0, [8])),
        (8, "auto", 1, True, (8, [])),
        (8, "auto", 2, True, (4, [4])),
        (9, "auto", 2, True, (4, [5])),
        (10, "auto", 4, True, (2, [3, 3, 2])),
        (4, "auto", 16, True, (1, [1, 1, 1])),
        (1, "auto", 16, True, (1, [])),
        (8, "auto", 3, False, (0, [3, 3, 2])),
        (8, "auto", 0, False, (0, [8])),
        (8, "auto", 0, True, (8, [])),
    ],
)
def test_shares_are_as_many_as_there_are_cores_and_nearly_equal(n_envs, envs_per_actor, cores, inline, expected):
    grouping = group(n_envs, envs_per_actor, cores, inline=inline)
    assert sizes(grouping) == expected
    assert [row for rows in (grouping.inline, *grouping.actors) for row in rows] == list(range(n_envs))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", None, True])
def test_other_values_are_refused(wrong):
    with pytest.raises(ConfigError, match="envs_per_actor must be 'auto' or a positive integer"):
        group(8, wrong, 2, inline=True)
