"""A curve as data: what is drawn, whatever it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A line, with or without a band around it.

    Attributes:
        label: Its name in the legend.
        x: Positions, shape `(n,)`.
        y: Heights, shape `(n,)`.
        low: Lower edge of the band, shape `(n,)`; None for no band.
        high: Upper edge.
    """

    label: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True)
class Estimate:
    """A figure and where it lies.

    Attributes:
        value: The figure.
        low: Lower end of its interval.
        high: Upper end.
    """

    value: float
    low: float
    high: float
