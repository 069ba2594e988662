"""Saving normalisation statistics on the way."""

from __future__ import annotations

import logging
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.experiment.run_folder import replace_file
from lit_sb3_ray.lit.refusals import refusing

logger = logging.getLogger(__name__)


class SaveVecNormalizeCallback(BaseCallback):
    """Saves the normalisation statistics every so many calls."""

    def __init__(self, save_freq: int, save_path: str, name_prefix: str | None = None, verbose: int = 0) -> None:
        """Prepares saving.

        Args:
            save_freq: Calls between two saves.
            save_path: Folder to save to.
            name_prefix: Saves `<prefix>_<steps>_steps.pkl`; None overwrites `vecnormalize.pkl`.
            verbose: 1 tells of each save.

        Raises:
            ConfigError: `save_freq` is below 1.
        """
        super().__init__(verbose)
        if save_freq < 1:
            raise ConfigError(f"save_freq of SaveVecNormalizeCallback must be at least 1, got {save_freq}")
        self.save_freq = save_freq
        self.save_path = Path(save_path)
        self.name_prefix = name_prefix

    def _init_callback(self) -> None:
        with refusing(f"save_path of SaveVecNormalizeCallback {str(self.save_path)!r} cannot be written"):
            self.save_path.mkdir(parents=True, exist_ok=True)

    def _on_step(self) -> bool:
        normalize = self.model.get_vec_normalize_env()
        if self.n_calls % self.save_freq == 0 and normalize is not None:
            steps = f"{self.name_prefix}_{self.num_timesteps}_steps.pkl"
            path = self.save_path / ("vecnormalize.pkl" if self.name_prefix is None else steps)
            replace_file(path, lambda partial: normalize.save(str(partial)))
            if self.verbose > 0:
                logger.info("Normalisation statistics saved to %s", path)
        return True
