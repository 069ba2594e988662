"""Callbacks that hyperparameters may name."""

import sys
from concurrent.futures import wait

from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.experiment.callbacks import ParallelTrainCallback


class Shift(BaseCallback):
    """Moves the model's weights a little at its 30th step."""

    def _on_step(self):
        if self.n_calls == 30:
            for weight in self.model.policy.parameters():
                weight.data += 0.01
        return True


class InTurns(ParallelTrainCallback):
    """Collects only while no gradient steps are being made, so that every rollout ends with an exchange."""

    def _on_step(self):
        if self._training is not None:
            wait([self._training])
        return super()._on_step()


class Printing(BaseCallback):
    """Prints whole lines and parts of lines to both streams."""

    def _on_step(self):
        if self.n_calls % 100 == 0:
            print(f"printed {self.n_calls}")
            print("begun", end=" ")
            print("ended", self.n_calls)
            sys.stderr.write(f"told {self.n_calls}\nand {self.n_calls}\n")
        return True

    def _on_training_end(self):
        print("last", end="")
