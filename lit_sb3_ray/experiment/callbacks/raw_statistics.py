"""Every episode's return and length, instead of means over many."""

from __future__ import annotations

import logging

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, TensorBoardOutputFormat

from lit_sb3_ray.lit.loggers import LightningWriter

logger = logging.getLogger(__name__)

# The console and files of means would be flooded.
_UNWANTED: tuple[str, ...] = ("stdout", "log", "json", "csv")


class RawStatisticsCallback(BaseCallback):
    """Logs each finished episode's return and length to TensorBoard and its like, at the env step it ended."""

    def __init__(self, verbose: int = 0) -> None:
        """Prepares logging.

        Args:
            verbose: As SB3's; nothing is printed.
        """
        super().__init__(verbose)
        self._warned = False

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            episode = info.get("episode")
            if episode is not None:
                self._write({"raw/rollouts/episodic_return": episode["r"], "raw/rollouts/episodic_length": episode["l"]})
        return True

    def _write(self, values: dict[str, float]) -> None:
        outputs = [output for output in self.logger.output_formats if _is_wanted(output)]
        if not outputs and not self._warned:
            logger.warning("RawStatisticsCallback has nowhere to write to: give --logger tensorboard or another")
            self._warned = True
        for output in outputs:
            output.write(values, dict.fromkeys(values, _UNWANTED), self.num_timesteps)


def _is_wanted(output: KVWriter) -> bool:
    """Whether an output shows single episodes; Lightning's does where the run has loggers."""
    if isinstance(output, LightningWriter):
        return bool(output.trainer.loggers)
    return isinstance(output, TensorBoardOutputFormat)
