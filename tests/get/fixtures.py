"""Copies of the models of tests/parity, for the tests and for what makes their expected texts."""
import json
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))


def copied(model, folder):
    """Copies a model without its arrays to a folder, which may be there, and returns its config."""
    shutil.copytree(os.path.join(HERE, "../parity/fixtures", model), folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.npy"))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)
