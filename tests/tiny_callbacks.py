"""Callbacks that hyperparameters may name."""

from stable_baselines3.common.callbacks import BaseCallback


class Shift(BaseCallback):
    """Moves the model's weights a little at its 30th step."""

    def _on_step(self):
        if self.n_calls == 30:
            for weight in self.model.policy.parameters():
                weight.data += 0.01
        return True
