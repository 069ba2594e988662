"""Machines for tests: processes with a network, a process tree, a /tmp and a home of their own, which answer to ssh.

A host is one process tree of `unshare` on this machine. Its first process is an sshd, so whatever runs on the host ends when
that one is killed, and its network goes with it. The file system is this machine's but for /tmp, /run, /dev/shm and the users,
which are the host's own. The folder that the hosts are made with is seen by all of them at the same place.

Needed: root, `unshare`, `nsenter` and `setpriv` (util-linux), `ip` (iproute2), `sshd` (openssh-server), `rsync`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HOME = "/tmp/home"
BRIDGE, BRIDGE_ADDRESS = "lsr0", "02:00:00:00:77:01"
# What a host is made with; each must be there, or the test fails.
TOOLS = ("setpriv", "unshare", "nsenter", "ip", "sshd", "ssh", "ssh-keygen", "rsync")

START = """
set -e
mount --rbind /tmp /mnt
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
for folder in $KEPT; do
  mkdir -p "/tmp/$folder"
  mount --bind "/mnt/$folder" "/tmp/$folder"
done
umount -l /mnt
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount --bind "$BASE/passwd" /etc/passwd
mount --bind "$BASE/hosts" /etc/hosts
cp -r "$BASE/home" /tmp/home
mkdir -p /run/sshd
hostname "$NAME"
exec "$SSHD" -D -e -f "$BASE/sshd_config"
"""


@dataclass(frozen=True)
class Done:
    """What became of a command, and all that it printed."""

    returncode: int
    stdout: str


@dataclass(frozen=True)
class Host:
    """A host that runs: what it is called, its address, and its first process as this machine numbers it."""

    name: str
    address: str
    unshare: subprocess.Popen
    pid: int

    def command(self, *command, cwd=REPOSITORY):
        """Returns what runs a command on this host, with the environment of a login."""
        inside = ["nsenter", "-t", str(self.pid), "--net", "--pid", "--mount", "--uts", "--ipc"]
        login = [
            "env",
            "-C",
            str(cwd),
            "-i",
            f"HOME={HOME}",
            "USER=root",
            f"PATH={HOME}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        ]
        return [*inside, *login, "TERM=dumb", "PYTHONUNBUFFERED=1", "RAY_USAGE_STATS_ENABLED=0", *map(str, command)]

    def run(self, *command, cwd=REPOSITORY, timeout=120, check=True):
        """Runs a command to its end."""
        # A file, since a connection that ssh keeps open for the next command would keep a pipe open, too.
        with tempfile.TemporaryFile("w+") as output:
            given = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT, "timeout": timeout}
            code = subprocess.run(self.command(*command, cwd=cwd), **given).returncode
            output.seek(0)
            told = output.read()
        assert not check or code == 0, f"{shlex.join(map(str, command))} on {self.name} ended with {code}:\n{told}"
        return Done(code, told)

    def start(self, *command, log, cwd=REPOSITORY):
        """Starts a command whose output goes to a file, and returns the process."""
        with open(log, "w") as output:
            return subprocess.Popen(
                self.command(*command, cwd=cwd), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self):
        """Ends everything on this host at once, as a power cut does."""
        if self.unshare.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.unshare.wait(timeout=30)


class Network:
    """Hosts that reach each other by name and by address, and nothing else."""

    def __init__(self, base: Path):
        missing = [tool for tool in TOOLS if _found(tool) is None]
        assert not missing, f"needed for this test: {', '.join(missing)}"
        assert os.geteuid() == 0, "network namespaces need root"
        self.base = base
        self.hosts: list[Host] = []
        _furnish(base)

    def add(self, name: str) -> Host:
        """Starts one more host; the first one holds the bridge between them."""
        number = len(self.hosts) + 1
        address = f"10.77.0.{number}"
        with open(self.base / "hosts", "a") as names:
            names.write(f"{address} {name}\n")
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "BASE": str(self.base), "NAME": name, "SSHD": _found("sshd")}
        with open(self.base / f"{name}.log", "w") as log:
            unshare = subprocess.Popen(
                [
                    "unshare",
                    "--net",
                    "--pid",
                    "--mount",
                    "--uts",
                    "--ipc",
                    "--fork",
                    "--kill-child",
                    "--mount-proc",
                    "sh",
                    "-c",
                    START,
                ],
                env={**environment, "KEPT": " ".join(_kept(self.base))},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        host = Host(name, address, unshare, _child_of(unshare))
        self.hosts.append(host)
        self._connect(host)
        wait(lambda: _listens(host.pid, 22) or unshare.poll() is not None, 20, f"sshd of {name}")
        assert unshare.poll() is None, (self.base / f"{name}.log").read_text()
        return host

    def _connect(self, host: Host) -> None:
        hub = self.hosts[0]
        _ip(host, "link", "set", "lo", "up")
        if host is hub:
            # Of itself a bridge has the least address of its ports: it would change as a host dies, and others' connections
            # with this one would stand still until they ask for it again, which takes a minute or two.
            _ip(hub, "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
            device = BRIDGE
        else:
            end = f"h{host.address.rsplit('.', 1)[1]}"
            _ip(hub, "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", host.pid)
            _ip(hub, "link", "set", end, "master", BRIDGE, "up")
            device = "eth0"
        _ip(host, "addr", "add", f"{host.address}/24", "dev", device)
        _ip(host, "link", "set", device, "up")
        # Ray learns a host's address from the route it would take to the world.
        _ip(host, "route", "add", "default", "via", hub.address if host is not hub else "10.77.0.254", "dev", device)

    def close(self) -> None:
        """Ends all hosts with all that runs on them."""
        for host in reversed(self.hosts):
            host.kill()


def _furnish(base: Path) -> None:
    """Makes what all hosts have: keys, settings of sshd, and a home with an environment to install the package in."""
    home = base / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh").chmod(0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / ".ssh/id_ed25519"], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / "host_key"], check=True)
    shutil.copy(home / ".ssh/id_ed25519.pub", home / ".ssh/authorized_keys")
    settings = {
        "HostKey": base / "host_key",
        "AuthorizedKeysFile": f"{HOME}/.ssh/authorized_keys",
        "PermitRootLogin": "yes",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
    }
    (base / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    users = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    (base / "passwd").write_text("\n".join([f"root:x:0:0:root:{HOME}:/bin/bash", *users, ""]))
    (base / "hosts").write_text("127.0.0.1 localhost\n")
    _make_environment(home / "lit_sb3_ray_env", f"{HOME}/lit_sb3_ray_env")


def _make_environment(folder: Path, place: str) -> None:
    """Makes an environment that has what this one has: as one into which everything but the package was installed before.

    Args:
        folder: Where it is made.
        place: Where the hosts see it.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    own = next(folder.glob("lib/python*/site-packages"))
    (own / "installed_before.pth").write_text(packages + "\n")
    for name, module in {"ray": "ray.scripts.scripts", "pip": "pip._internal.cli.main"}.items():
        script = folder / "bin" / name
        script.write_text(f"#!{place}/bin/python\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)


def _kept(base: Path):
    """Lists the folders under /tmp that the hosts share with this machine."""
    wanted = {Path(sys.prefix), Path(sys.base_prefix), REPOSITORY, base}
    return sorted(str(path.relative_to("/tmp")) for path in wanted if path.is_relative_to("/tmp"))


def _ip(host: Host, *arguments) -> None:
    subprocess.run(["nsenter", "-t", str(host.pid), "--net", "ip", *map(str, arguments)], check=True)


def _found(tool: str):
    return shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def _child_of(process: subprocess.Popen) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait(lambda: children.read_text().split() or process.poll() is not None, 20, "the host's first process")
    return int(children.read_text().split()[0])


def _listens(pid: int, port: int) -> bool:
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


def wait(condition, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {seconds:g} s"
        time.sleep(0.05)
