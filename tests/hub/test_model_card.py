"""The model card: what the Hub reads of it, what rl_zoo3 reads of it, and what people read."""

from dataclasses import replace

import pytest
from huggingface_hub import ModelCard

from lit_sb3_ray.hub.model_card import CardFacts, build_card
from lit_sb3_ray.hub.results import Results

RESULTS = Results(
    mean_reward=12.345,
    std_reward=1.5,
    is_deterministic=True,
    n_eval_episodes=10,
    eval_datetime="2030-01-02T03:04:05+00:00",
    mean_ep_length=99.5,
    success_rate=None,
)
FACTS = CardFacts(
    algo="ppo_lstm",
    algo_class="RecurrentPPO",
    env_id="CartPole-v1",
    organization="me",
    repo_name=None,
    hyperparameters={"n_steps": 8, "policy": "MlpLstmPolicy"},
    env_kwargs={},
    gym_packages=(),
    results=RESULTS,
    n_timesteps=100_000,
    replay=False,
)


def test_metadata_is_what_the_hub_and_rl_zoo3_read():
    data = ModelCard(build_card(FACTS)).data
    assert data.library_name == "stable-baselines3"
    assert {"CartPole-v1", "reinforcement-learning", "stable-baselines3"} <= set(data.tags)
    (index,) = data.to_dict()["model-index"]
    # rl_zoo3 takes algorithm and environment from these two.
    assert index["name"] == "RecurrentPPO"
    assert index["results"][0]["dataset"]["name"] == "CartPole-v1"
    assert index["results"][0]["metrics"][0] == {
        "type": "mean_reward",
        "value": "12.35 +/- 1.50",
        "name": "mean_reward",
        "verified": False,
    }


def test_the_text_tells_how_good_it_is_and_how_to_use_it():
    text = ModelCard(build_card(FACTS)).text
    assert "# RecurrentPPO on CartPole-v1" in text
    assert "100,000 env steps" in text
    assert "| mean return | 12.35 +/- 1.50 |" in text
    assert "lit-sb3-ray load-from-hub --algo ppo_lstm --env CartPole-v1 -f logs -orga me\n" in text
    assert "lit-sb3-ray enjoy --algo ppo_lstm --env CartPole-v1 -f logs\n" in text
    assert "policy: MlpLstmPolicy" in text
    assert "replay.mp4" not in text
    assert "success rate" not in text
    assert "Arguments of the environment" not in text


def test_what_is_not_usual_is_told_too():
    facts = replace(
        FACTS,
        repo_name="other",
        env_kwargs={"length": 7},
        gym_packages=("tiny_envs",),
        results=replace(RESULTS, success_rate=0.5, is_deterministic=False),
        replay=True,
    )
    text = ModelCard(build_card(facts)).text
    assert "-orga me -name other\n" in text
    assert "--gym-packages tiny_envs\n" in text
    assert "length: 7" in text
    assert "| success rate | 50.0 % |" in text
    assert "drawn at random" in text
    assert "replay.mp4" in text


@pytest.mark.parametrize("value", ["---", "a: b", "`", "é"])
def test_odd_values_leave_the_card_whole(value):
    card = ModelCard(build_card(replace(FACTS, hyperparameters={"policy": value}, env_kwargs={"name": value})))
    assert card.data.library_name == "stable-baselines3"
    assert "## Arguments of the environment" in card.text
