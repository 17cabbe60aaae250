#!/usr/bin/env python3
"""Writes tests/import/defaults.json: for each model_type that import knows, the keys of its config and the values that
transformers gives to those that config.json lacks, objects within objects too. Needs transformers 5.23; the file is
committed.

    tests/import/make_defaults.py"""
import json
import os
import subprocess

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HERE = os.path.dirname(os.path.abspath(__file__))
ATTNC = os.environ.get("ATTNC", os.path.join(HERE, "../../build/attnc"))
# Of the folder and of the classes, not of the model.
NEVER = ("transformers_version", "model_type", "architectures", "_name_or_path", "id2label", "label2id")


def kept(value):
    if isinstance(value, dict):
        return {key: kept(inner) for key, inner in value.items() if key not in NEVER}
    return value


def main():
    listed = subprocess.run([ATTNC, "import", "--list"], check=True, capture_output=True, text=True).stdout
    types = sorted({line.split()[0] for line in listed.splitlines() if not line.startswith("gguf ")})
    defaults = {name: kept(json.loads(CONFIG_MAPPING[name]().to_json_string(use_diff=False))) for name in types}
    with open(os.path.join(HERE, "defaults.json"), "w", encoding="utf-8") as file:
        json.dump(defaults, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
