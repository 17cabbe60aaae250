#!/usr/bin/env python3
"""Writes NAME.public and NAME.tensors of every family, from the classes of transformers.

    make_golden.py [NAME…]             writes the goldens (needs torch and transformers)
    make_golden.py --check [NAME…]     only compares each spec's `weights` block with the goldens (needs neither)
    make_golden.py --compare [NAME…]   runs class and interpreter on the same random weights

NAME.public lists the tensors of the file that save_pretrained writes. NAME.tensors says where every canonical tensor is
in it, by tables.py."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
from lib.attnc import ATTNC  # noqa: E402
from tables import COMPUTED, FAMILIES  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

# ---------------------------------------------------------------- goldens


def shape_text(shape):
    return "[" + ", ".join(str(n) for n in shape) + "]"


def product(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def plain_shape(shape):
    """As a canonical tensor has it: [1, 1, d] is [d], [d, 3, p, p] is [d, 3*p*p]."""
    shape = list(shape)
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape if len(shape) < 3 else [shape[0], product(shape[1:])]


def cut_shape(shape, cut):
    """The shape of what CUT, as NAME.tensors writes it, leaves of a tensor of SHAPE."""
    shape, words = plain_shape(shape), cut.split()
    if words[:1] == ["transpose"]:
        shape, words = shape[::-1], words[1:]
    if words[:1] == ["rows"]:
        begin, end = map(int, words[1].split(".."))
        assert begin < end <= shape[0], "rows beyond the tensor"
        shape, words = [end - begin] + shape[1:], words[2:]
    if words[:1] == ["interleaved"]:
        groups, parts, take = int(words[1]), int(words[3]), words[5].split("..")
        begin, end = int(take[0]), int(take[1]) if len(take) > 1 else int(take[0]) + 1
        assert shape[0] % (groups * parts) == 0 and begin < end <= parts, "parts do not divide the rows"
        shape, words = [shape[0] // parts * (end - begin)] + shape[1:], words[6:]
    assert not words, "unknown cut"
    return shape


def cuts(how, count):
    """The cut of each of COUNT canonical tensors that lie in one."""
    words, first = how.split(), ""
    if words[:1] == ["transpose"]:
        first, words = "transpose", words[1:]
    if not words:
        return [first] * count
    numbers = [int(w) for w in words[1:]]
    groups = numbers.pop(0) if words[0] == "groups" else 0
    out, at = [], 0
    for n in numbers:
        if groups:
            take = str(at) if n == 1 else f"{at}..{at + n}"
            out.append(f"{first} interleaved {groups} parts {sum(numbers)} take {take}".strip())
        else:
            out.append(f"{first} rows {at}..{at + n}".strip())
        at += n
    assert len(out) == count
    return out


def table_lines(table):
    for line in table.split("\n"):
        words = line.split()
        if not words:
            continue
        how = next((i for i, w in enumerate(words) if w in ("transpose", "rows", "groups")), len(words))
        yield words[0], words[1:how], " ".join(words[how:])


def golden(name, public):
    """{canonical: (shape, file's name, file's shape, cut)} by the table."""
    out = {}
    for theirs, shape in public.items():
        if theirs in COMPUTED.get(name, ()):
            continue
        found = False
        for pattern, ours, how in table_lines(FAMILIES[name][3]):
            match = re.fullmatch(re.escape(pattern).replace("\\#", "(\\d+)") + r"(\.weight|\.bias)?", theirs)
            if not match:
                continue
            found = True
            layer = match.group(1) if "#" in pattern else ""
            suffix = match.groups()[-1] or ""
            for canonical, cut in zip(ours, cuts(how, len(ours))):
                if len(shape) == 1:
                    cut = cut.replace("transpose", "").strip()
                canonical = canonical.replace("#", layer) + suffix
                assert canonical not in out, f"{name}: {canonical} twice"
                out[canonical] = (cut_shape(shape, cut), theirs, shape, cut)
        assert found, f"{name}: no line for {theirs}"
    return out


def read_public(name):
    with open(os.path.join(HERE, name + ".public")) as f:
        return {line.split(None, 1)[0]: json.loads(line.split(None, 1)[1]) for line in f}


def write(path, lines):
    with open(os.path.join(HERE, path), "w") as f:
        f.write("".join(line + "\n" for line in lines))


def attnc_weights(name):
    text = subprocess.run(
        [ATTNC, "weights", os.path.join(HERE, name + ".attn")], check=True, capture_output=True, text=True
    ).stdout
    return {m.group(1): json.loads(m.group(2)) for m in re.finditer(r"^(\S+) +(\[.*?\]) +\d+$", text, re.M)}


def build(name):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(20240607)
    config, cls, settings, _ = FAMILIES[name]
    model = getattr(transformers, cls)(getattr(transformers, config)(**settings)).eval()
    if name == "flan_t5":  # public files hold both tables, and then transformers keeps both
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if key not in COMPUTED.get(name, ()) and value.is_floating_point():
                value.copy_(
                    torch.randn_like(value) * (0.3 if value.dim() > 1 else 0.2)
                    + (1 if value.dim() == 1 and value.mean() == 1 else 0)
                )
    return model


def save(model, folder):
    model.save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    header.pop("__metadata__", None)
    return path, {key: header[key]["shape"] for key in sorted(header)}


def make(name):
    with tempfile.TemporaryDirectory() as folder:
        public = save(build(name), folder)[1]
    table, ours = golden(name, public), attnc_weights(name)
    for canonical, (shape, theirs, theirs_shape, cut) in list(table.items()):
        want = ours.get(canonical)
        assert want, f"{name}: attnc does not know {canonical}"
        if canonical.endswith("embedding.positions.weight") and want[0] < shape[0]:
            cut, shape = f"rows 0..{want[0]}", want  # the spec's bound is shorter than the table
        table[canonical] = (want, theirs, theirs_shape, cut)
        assert plain_shape(want) == shape, f"{name}: {canonical} is {want}, and {theirs} gives {shape}"
    missing = sorted(set(ours) - set(table))
    assert not missing, f"{name}: the file lacks {missing}"
    write(name + ".public", [f"{key} {shape_text(shape)}" for key, shape in public.items()])
    write(
        name + ".tensors",
        [
            f"{c} {shape_text(table[c][0])} <- {table[c][1]} {shape_text(table[c][2])} {table[c][3]}".rstrip()
            for c in ours
        ],
    )


# ---------------------------------------------------------------- the `weights` block of a spec, read again


def block(name):
    """Lines (canonical, from, options), prefixes and ignored patterns of the spec's `weights` block."""
    with open(os.path.join(HERE, name + ".attn")) as f:
        text = f.read()
    values = {m.group(1): int(m.group(2)) for m in re.finditer(r"^ *(?:let )?(d_model|inner) =? ?(\d+)$", text, re.M)}
    body = text[text.index("weights {") :]
    lines = [
        (
            m.group(1),
            m.group(2),
            re.sub(r"[\w*]*d_model|[\w*]*inner", lambda e: str(eval(e.group(0), {}, values)), m.group(3)).strip(),
        )
        for m in re.finditer(r'^ *"(.*?)" from "(.*?)"(.*)$', body, re.M)
    ]
    strings = {
        word: [s for m in re.finditer(rf"^ *{word} (.*)$", body, re.M) for s in re.findall(r'"(.*?)"', m.group(1))]
        for word in ("prefix", "ignore")
    }
    return lines, strings["prefix"], strings["ignore"]


def check(name):
    """Follows the spec's block through NAME.public and compares with NAME.tensors."""
    lines, prefixes, ignored = block(name)
    public, ours = read_public(name), attnc_weights(name)
    with open(os.path.join(HERE, name + ".tensors")) as f:
        golden_lines = {line.split()[0]: line.rstrip("\n") for line in f}
    used = set()
    for canonical, shape in ours.items():
        found = None
        for pattern, source, cut in lines + [(canonical, canonical, "")]:
            regex = (
                re.escape(pattern).replace(r"\{layer\}", r"(?P<layer>\d+)").replace(r"\*", "(?P<suffix>weight|bias)")
            )
            match = re.fullmatch(regex, canonical)
            if not match or found:
                continue
            groups = match.groupdict()
            source = source.replace("{layer}", groups.get("layer") or "").replace("*", groups.get("suffix") or "")
            found = next(((p + source, cut) for p in [""] + prefixes if p + source in public), None)
        assert found, f"{name}: {canonical} is not found"
        theirs, cut = found
        used.add(theirs)
        if len(plain_shape(public[theirs])) == 1:
            cut = cut.replace("transpose", "").strip()
        left = cut_shape(public[theirs], cut)
        if canonical.endswith("embedding.positions.weight") and shape[0] < left[0]:
            cut, left = f"rows 0..{shape[0]}", shape
        assert left == plain_shape(shape), f"{name}: {canonical} is {shape}, {theirs} gives {left}"
        line = f"{canonical} {shape_text(shape)} <- {theirs} {shape_text(public[theirs])} {cut}".rstrip()
        assert (
            golden_lines.get(canonical) == line
        ), f"{name}: the block says\n  {line}\nand the golden\n  {golden_lines.get(canonical)}"
    for theirs in set(public) - used:
        bare = [theirs] + [theirs[len(p) :] for p in prefixes if theirs.startswith(p)]
        good = any(
            re.fullmatch(re.escape(i).replace(r"\{layer\}", r"\d+").replace(r"\*", ".*"), b)
            for i in ignored
            for b in bare
        )
        assert good, f"{name}: {theirs} is neither found nor ignored"


# ---------------------------------------------------------------- the same numbers


def save_npy(path, array):
    import numpy

    numpy.save(path, numpy.ascontiguousarray(array))


def outputs_of(name, model, rows):
    """Inputs for attnc, and the outputs of the class."""
    import torch

    if name in ("vit", "deit"):
        pixels = torch.randn(3, 8, 8)
        return {"pixels": pixels}, {"logits": model(pixels[None]).logits[0]}
    if name == "dinov3":
        pixels = torch.randn(3, 8, 8)
        return {"pixels": pixels}, {"hidden": model(pixels[None]).last_hidden_state[0]}
    tokens = torch.randint(3, 48, (rows,), dtype=torch.int32)
    if hasattr(model, "get_encoder") and model.config.is_encoder_decoder:
        source = torch.randint(3, 48, (rows - 4,), dtype=torch.int32)
        out = model(input_ids=source[None].long(), decoder_input_ids=tokens[None].long())
        return {"source": source, "target": tokens}, {
            "logits": out.logits[0],
            "encoder_hidden": out.encoder_last_hidden_state[0],
        }
    out = model(input_ids=tokens[None].long())
    if "logits" in out:
        return {"tokens": tokens}, {"logits": out.logits[0]}
    wanted = {"hidden": out.last_hidden_state[0]}
    if getattr(out, "pooler_output", None) is not None and name != "clip_text":  # whose row is at the first end token
        wanted["pooled"] = out.pooler_output[0]
    return {"tokens": tokens}, wanted


def compare(name):
    import numpy
    import torch

    model, worst = build(name), 0.0
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = save(model, folder)[0]
        for rows in (6, 23):
            inputs, wanted = outputs_of(name, model, rows)
            command = [ATTNC, "run", os.path.join(HERE, name + ".attn"), "--weights", path, "--engine", "interp"]
            for key, value in inputs.items():
                save_npy(f"{folder}/{key}.npy", value.numpy())
                command += ["--in", f"{key}={folder}/{key}.npy"]
            for key in wanted:
                command += ["--out", f"{key}={folder}/out_{key}.npy"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{name}: {done.stderr}"
            for key, value in wanted.items():
                ours, theirs = numpy.load(f"{folder}/out_{key}.npy").astype(float), value.numpy().astype(float)
                assert ours.shape == theirs.shape, f"{name}: {key} is {ours.shape}, not {theirs.shape}"
                off = abs(ours - theirs).max() / (1 + abs(theirs).max())
                assert off <= 1e-5, f"{name}: {key} is off by {off:.2e} at {rows} rows"
                worst = max(worst, off)
    print(f"{name}: within {worst:.1e}")


def main():
    work = {"--check": check, "--compare": compare}.get(sys.argv[1] if len(sys.argv) > 1 else "", None)
    names = [a for a in sys.argv[1:] if not a.startswith("--")] or list(FAMILIES)
    bad = 0
    for name in names:
        try:
            if work:
                work(name)
            else:
                make(name)
                check(name)
        except AssertionError as why:
            print(why, file=sys.stderr)
            bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
