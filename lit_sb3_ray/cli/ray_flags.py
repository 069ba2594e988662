"""The flags of Ray: which cluster, and what is shipped to it."""

from __future__ import annotations

import argparse
import re

from lit_sb3_ray.cli.flags import FlagParser, whole_number
from lit_sb3_ray.scale.placement import STRATEGIES
from lit_sb3_ray.scale.ray_settings import RaySettings, read_env_vars

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def add_ray(parser: FlagParser) -> None:
    """Adds the flags of Ray to a parser."""
    group = parser.add_argument_group("Ray and clusters")
    group.add_argument(
        "--ray-address",
        metavar="HOST:PORT|auto|local",
        help="the cluster to work on (default: RAY_ADDRESS, then one started on this machine, then a Ray of its own); local: "
        "a Ray of its own in any case; a job that runs on a cluster joins that one",
    )
    group.add_argument("--ray-num-cpus", type=whole_number(0), metavar="N", help="CPUs of a Ray of its own (default: all)")
    group.add_argument("--ray-num-gpus", type=whole_number(0), metavar="N", help="GPUs of a Ray of its own (default: all)")
    group.add_argument(
        "--ray-object-store-memory",
        type=memory,
        metavar="SIZE",
        help="memory for objects of a Ray of its own, such as 500M or 2G (default: Ray's)",
    )
    group.add_argument("--ray-dashboard", action="store_true", help="start Ray's dashboard with a Ray of its own")
    group.add_argument(
        "--py-modules",
        nargs="+",
        metavar="PATH",
        help="packages, .py files and wheels that all nodes shall be able to import: envs, policies, extractors, callbacks",
    )
    group.add_argument(
        "--working-dir", metavar="DIR", help="folder that is copied to all nodes, where their processes then start"
    )
    group.add_argument(
        "--env-vars", nargs="+", metavar="NAME=VALUE", help="environment variables of Ray's processes on all nodes"
    )


def add_placement(parser: FlagParser) -> None:
    """Adds the flag of where env actors go."""
    group = parser.add_argument_group("nodes")
    group.add_argument(
        "--placement",
        choices=tuple(STRATEGIES),
        help="nodes of an experiment's env actors: with its learner on one node (strict-pack), on as few as hold them (pack), "
        "or on many (spread); by default one node where one has the room, else few",
    )


def ray_settings(args: argparse.Namespace) -> RaySettings:
    """Builds how to get hold of Ray.

    Args:
        args: The settings of a command.

    Raises:
        ConfigError: One of them is wrong.
    """
    return RaySettings(
        address=args.ray_address,
        num_cpus=args.ray_num_cpus,
        num_gpus=args.ray_num_gpus,
        object_store_memory=args.ray_object_store_memory,
        dashboard=args.ray_dashboard,
        py_modules=tuple(args.py_modules),
        working_dir=args.working_dir,
        env_vars=read_env_vars(args.env_vars),
    )


def memory(text: str) -> int:
    """Reads an amount of memory: a number of bytes, or one with K, M, G or T.

    Args:
        text: The word as typed.

    Returns:
        Bytes.

    Raises:
        argparse.ArgumentTypeError: It is no amount.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory: a number of bytes, or such as 500M or 2G")
    return int(float(match[1]) * 1024 ** _UNITS[match[2].upper()])
