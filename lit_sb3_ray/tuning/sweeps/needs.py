"""What a run is given of a cluster, and how many runs fit there at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.scale.nodes import node_resources

# Ray counts resources in ten-thousandths.
_GRAIN = 1e-4


@dataclass(frozen=True)
class Need:
    """What a run is given, all on one node.

    Attributes:
        cpus: CPUs, those of its env actors included.
        gpus: GPUs, or a part of one.
        learner_cpus: Of the CPUs, those of the process that trains.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    learner_cpus: float = 1.0

    @property
    def bundle(self) -> dict[str, float]:
        """The same as Ray writes it."""
        return {"CPU": self.cpus, **({"GPU": self.gpus} if self.gpus > 0 else {})}

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs" + (f" and {self.gpus:g} GPUs" if self.gpus > 0 else "")


def find_need(
    cpus: float | None, gpus: float, env_actors: int, env_cpus: float | None, nodes: Sequence[Mapping[str, float]]
) -> Need:
    """Settles what a run is given.

    Args:
        cpus: What was asked for; None for one CPU, and one more for each env actor as far as a node has them.
        gpus: GPUs, or a part of one.
        env_actors: Environments, those of evaluation included, that are to be in actors; 0 when all are in the run's process.
        env_cpus: CPUs of each of them; None for one, or what there is.
        nodes: What each node has.

    Raises:
        ConfigError: No node has that much.
    """
    most = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
    if cpus is None:
        cpus = 1.0 + env_actors * env_cpus if env_cpus is not None else max(1.0, min(1.0 + env_actors, most))
    need = Need(cpus, gpus, min(1.0, cpus) if env_actors else cpus)
    if not any(_fitting(node, need) for node in nodes):
        largest = ", ".join(sorted({f"{node.get('CPU', 0.0):g} CPUs and {node.get('GPU', 0.0):g} GPUs" for node in nodes}))
        raise ConfigError(f"a run needs {need}, and no node has that much; there are nodes with {largest}")
    return need


def room(needs: Iterable[Need]) -> int:
    """Counts how many runs the nodes that are there now can hold at once, whatever else is going on there.

    Args:
        needs: What the runs need; those that need the most count.
    """
    largest = list(needs)
    need = Need(max(each.cpus for each in largest), max(each.gpus for each in largest))
    return max(1, sum(_fitting(node, need) for node in node_resources()))


def _fitting(node: Mapping[str, float], need: Need) -> int:
    counts = [int((node.get(name, 0.0) + _GRAIN / 2) // amount) for name, amount in need.bundle.items()]
    return min(counts)
