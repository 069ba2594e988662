"""Drivers of a study: who works on it, who has died, and who may begin.

Each driver keeps an entry among the study's user attributes and renews it. One that has not done so for `LEASE_S` seconds, or
whose process is gone from this machine, is dead, and what it was working on may be taken over.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_sb3_ray.errors import ConfigError

if TYPE_CHECKING:
    from optuna import Study

    from lit_sb3_ray.experiment.study_options import Entrance

LEASE_S = 60.0
RENEW_EVERY_S = 5.0
# How long the first of several that enter in the same moment waits for the others to leave.
RIVAL_PATIENCE_S = 5.0
RIVAL_LOOK_S = 0.1
_PREFIX = "driver:"
_STOP = "stop_requested"


@dataclass(frozen=True)
class Driver:
    """One process that has worked on a study.

    Attributes:
        id: Its name among the drivers.
        number: How many drivers came before it.
        host: The machine.
        pid: The process.
        started: When it began, in seconds since 1970.
        renewed: When it last renewed its entry.
        ended: When it left in good order; None while it has not.
        joined: Whether it has come to work beside others.
    """

    id: str
    number: int
    host: str
    pid: int
    started: float
    renewed: float
    ended: float | None = None
    joined: bool = False

    @property
    def alive(self) -> bool:
        """Whether it may still be at work."""
        if self.ended is not None or time.time() - self.renewed > LEASE_S:
            return False
        return self.host != socket.gethostname() or _is_running(self.pid)

    @property
    def worker(self) -> int:
        """A number that no other driver of the study has; several that join in the same moment count as many before them."""
        return int(self.id, 16) if self.joined else self.number

    def told(self) -> str:
        """Says who it is, for messages."""
        return f"process {self.pid} on {self.host}, last seen {max(0.0, time.time() - self.renewed):.0f} s ago"


class Lease:
    """This process's own entry."""

    def __init__(self, study: Study, number: int, joined: bool = False) -> None:
        now = time.time()
        self.study = study
        self._successor: Driver | None = None
        self.driver = Driver(secrets.token_hex(4), number, socket.gethostname(), os.getpid(), now, now, joined=joined)
        self._write()

    def renew(self) -> None:
        """Renews the entry if it is time; one that has a successor stays as it is."""
        if self.successor() is None and time.time() - self.driver.renewed > RENEW_EVERY_S:
            self._write()

    def successor(self) -> Driver | None:
        """Finds the driver that has taken over what this one was working on, once this one has been silent for too long.

        A process that was stopped for a while, with its machine or by itself, does not know it.
        """
        if self._successor is None and time.time() - self.driver.renewed > LEASE_S:
            later = [each for each in drivers_of(self.study) if each.started > self.driver.renewed and not each.joined]
            self._successor = later[0] if later else None
        return self._successor

    def stop_is_requested(self) -> bool:
        """Whether somebody has asked, since this driver began, that the study ends."""
        asked = self.study.user_attrs.get(_STOP)
        return asked is not None and float(asked) >= self.driver.started

    def end(self) -> None:
        """Notes that this driver leaves in good order."""
        self._write(ended=time.time())

    def _write(self, ended: float | None = None) -> None:
        self.driver = Driver(**{**vars(self.driver), "renewed": time.time(), "ended": ended})
        entry = {key: value for key, value in vars(self.driver).items() if key != "id"}
        self.study.set_user_attr(f"{_PREFIX}{self.driver.id}", entry)


def drivers_of(study: Study) -> list[Driver]:
    """Lists all drivers of a study, by when they began."""
    entries: dict[str, Any] = {key: value for key, value in study.user_attrs.items() if key.startswith(_PREFIX)}
    found = [Driver(id=key.removeprefix(_PREFIX), **value) for key, value in entries.items()]
    return sorted(found, key=lambda driver: driver.started)


def enter(study: Study, entrance: Entrance, where: str) -> Lease:
    """Makes this process a driver of a study.

    Args:
        study: The study.
        entrance: As a new study, to go on after a dead driver, or beside a living one.
        where: Names the study, for messages.

    Returns:
        The lease.

    Raises:
        ConfigError: The study exists, or is worked on, and this was not asked for.
    """
    check_entrance(study, entrance, where)
    lease = Lease(study, len(drivers_of(study)), joined=entrance == "join")
    rival = _rival(lease)
    if rival is not None:
        lease.end()
        raise ConfigError(f"{where} is worked on by {rival.told()}, which came in the same moment: --join works beside it")
    return lease


def _rival(lease: Lease) -> Driver | None:
    """Finds a driver that has entered in the same moment and stays; of several that see each other the first one stays."""
    own = lease.driver
    deadline = time.monotonic() + RIVAL_PATIENCE_S
    while not own.joined:
        others = [driver for driver in drivers_of(lease.study) if driver.alive and not driver.joined and driver.id != own.id]
        if not others:
            break
        first = min(others, key=lambda driver: (driver.started, driver.id))
        if (first.started, first.id) < (own.started, own.id) or time.monotonic() > deadline:
            return first
        # It sees this driver, too, and leaves; or it was in before this one had written its entry.
        time.sleep(RIVAL_LOOK_S)
    return None


def check_entrance(study: Study, entrance: Entrance, where: str) -> None:
    """Looks whether this process may become a driver of a study; see `enter`."""
    drivers = drivers_of(study)
    living = [driver for driver in drivers if driver.alive]
    if entrance == "new" and living:
        raise ConfigError(f"{where} is worked on by {living[-1].told()}: --join works beside it")
    if entrance == "new" and drivers:
        raise ConfigError(f"{where} exists already: --resume goes on with it, another --study-name begins a new one")
    # Rows that only wait have been put there for this study to begin with.
    if entrance == "new" and any(row.state.name != "WAITING" for row in study.get_trials(deepcopy=False)):
        raise ConfigError(f"{where} has trials of another system, which cannot be gone on with: give another --study-name")
    if entrance == "resume" and living:
        raise ConfigError(f"{where} is worked on by {living[-1].told()}: --join works beside it, `stop` ends it")
    if entrance == "join" and not living:
        raise ConfigError(f"nobody works on {where}: --resume goes on with it")


def request_stop(study: Study) -> list[Driver]:
    """Asks all living drivers to end in good order.

    Returns:
        Those that are asked.
    """
    study.set_user_attr(_STOP, time.time())
    return [driver for driver in drivers_of(study) if driver.alive]


def dead_drivers(study: Study) -> set[str]:
    """Names the drivers that work no more."""
    return {driver.id for driver in drivers_of(study) if not driver.alive}


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_defunct(pid)


def _is_defunct(pid: int) -> bool:
    """Whether a process has ended and only waits for its parent to notice."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] == "Z"
