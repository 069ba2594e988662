"""Lets `python -m lit_sb3_ray` stand for the console script `lit-sb3-ray`."""

from __future__ import annotations

import sys

from lit_sb3_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
