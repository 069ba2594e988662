"""A tiny run of our own, the stand-in for the Hub, and what a push of that run leaves there."""

import pytest
from hub_client import AGENT, PUSH, REPO, client_of_stand_in
from recorded_runs import TRAIN

from lit_sb3_ray.cli import main as cli


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    """A log folder with a run that is normalised, has a best model and others saved on the way."""
    logs = tmp_path_factory.mktemp("own") / "logs"
    words = ["-f", str(logs), *TRAIN, "-params", "n_steps:32", "n_envs:2", "normalize:True", "--verbose", "0"]
    assert cli.main(["train", *AGENT, *words]) == 0
    return logs


@pytest.fixture
def hub(tmp_path):
    """The stand-in, empty."""
    with client_of_stand_in(tmp_path) as hub:
        yield hub


@pytest.fixture(scope="session")
def pushed(logs, tmp_path_factory):
    """The files of a repository, as a push has left them."""
    with client_of_stand_in(tmp_path_factory.mktemp("pushed")) as hub:
        assert cli.main([*PUSH, "-f", str(logs)]) == 0
        return dict(hub.repositories[REPO].files)


@pytest.fixture
def filled(hub, pushed):
    """The stand-in, with what was pushed."""
    hub.add(REPO, pushed)
    return hub
