"""The real client of the Hub, turned to a stand-in: its own cache and token, and large files by plain HTTP."""

from __future__ import annotations

import contextlib

import pytest
from hub_server import TOKEN, serve_hub

from lit_sb3_ray.hub.download import download_run

REPO = "me/ppo-CartPole-v1"
AGENT = ["--algo", "ppo", "--env", "CartPole-v1"]
PUSH = ["push-to-hub", *AGENT, "-orga", "me", "--eval-episodes", "2", "--no-render", "--device", "cpu", "--num-threads", "1"]


@contextlib.contextmanager
def client_of_stand_in(folder):
    """Serves a stand-in, and turns the client of this process to it, logged in."""
    import huggingface_hub
    from huggingface_hub import constants

    with serve_hub() as hub, pytest.MonkeyPatch.context() as patch:
        # The client reads its environment variables once, when it is imported.
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}")
        patch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub_cache"))
        patch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        patch.setenv("HF_TOKEN", TOKEN)
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield hub
        huggingface_hub.close_session()


def load(folder, **kwargs):
    """Downloads the run of `REPO`."""
    return download_run(folder, "ppo", "CartPole-v1", **{"organization": "me", **kwargs})
