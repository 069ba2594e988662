"""Files that would run a command when they are opened as usual: the command makes a file, whose absence is the proof."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shlex
import zipfile


class Command:
    """Runs a command as it is unpickled."""

    def __init__(self, made):
        self.words = f"touch {shlex.quote(str(made))}"

    def __reduce__(self):
        return os.system, (self.words,)


def hostile_pickle(made):
    """A pickle that makes the file `made`."""
    return pickle.dumps(Command(made))


def rewrite_model(source, target, **entries):
    """Copies a model with pickles put in place of entries of its data."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "data":
                pickled = {
                    key: {":type:": "x", ":serialized:": base64.b64encode(value).decode()} for key, value in entries.items()
                }
                content = json.dumps({**json.loads(content), **pickled}).encode()
            new.writestr(name, content)
    return target


def zip_with(path, *names, content=b"x"):
    """A zip with files of the given names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return path
