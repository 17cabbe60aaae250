"""docs/models.md, as it says it: its commands and programs are run on small folders that stand for DIR, what they print
is compared with PyTorch's numbers, and each note and error that it explains is provoked."""
import glob
import json
import os
import re
import shutil

from lib import npy, safetensors
from lib.attnc import ROOT
from parity import gguf

PARITY = os.path.join(ROOT, "tests", "parity")
STORY = os.path.join(ROOT, "examples", "story", "model")
SENTENCE = '"A text."'  # of the page's command


def section(title):
    """The text of a section, of either level, up to the next one."""
    with open(os.path.join(ROOT, "docs", "models.md"), encoding="utf-8") as file:
        page = file.read()
    return re.search(r"^##+ %s\n(.*?)(?=^##+ |\Z)" % title, page, re.M | re.S)[1]


def blocks(title, kind):
    return re.findall(r"^```%s\n(.*?)^```$" % kind, section(title), re.M | re.S)


def rows(title):
    """The rows of the section's tables: the text of the first column, in backquotes, one by one."""
    return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in section(title).splitlines()
            if re.match(r"\| [^|]*`", line)]


def numbers(path):
    """All numbers of a .npy file."""
    return list(npy.read(path).numbers)


class Place:
    """A folder where DIR and TOKENIZER of the page stand for a fixture's copy and this tree's tokenizer."""
    def __init__(self, path, fixture, tools):
        self.path, self.tools = path, tools
        os.mkdir(path)
        shutil.copytree(os.path.join(PARITY, fixture) if fixture != STORY else STORY, os.path.join(path, "DIR"))
        os.symlink(os.path.join(ROOT, "runtime", "tokenizer"), os.path.join(path, "TOKENIZER"))

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.write(text)

    def sh(self, text, status=0):
        path = os.path.join(ROOT, "build") + os.pathsep + os.environ["PATH"]
        return self.tools.run("bash", "-euc", text, cwd=self.path, status=status, PATH=path)

    def config(self, **keys):
        with open(self.file("DIR/config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config.update(keys)
        self.write("DIR/config.json", json.dumps({k: v for k, v in config.items() if v != "absent"}))

    def vocabulary(self, ids, words):
        """A vocab.txt by which a text has these ids, the first and the last of which stand around it."""
        names = ["w%d" % i for i in range(words)]
        names[ids[0]], names[ids[-1]] = "[CLS]", "[SEP]"
        names[next(i for i in range(words) if i not in ids)] = "[UNK]"
        self.write("DIR/vocab.txt", "\n".join(names) + "\n")
        return " ".join(names[i] for i in ids[1:-1])

    def warnings(self):
        for compiler in self.tools.COMPILERS:
            self.tools.run(compiler, *self.tools.STRICT, "-ITOKENIZER", "-c", "main.c", "-o", "main.o", cwd=self.path)


def close(tools, printed, wanted):
    tools.expect_close([[float(word) for word in printed.split()]], [wanted], 1e-5)


def one_step(folder, tools):
    """The command of the section on attnc get, whose program tells a story."""
    place = Place(os.path.join(folder, "one_step"), STORY, tools)
    (command,) = blocks("A program in one step", "sh")
    place.sh(command)
    shown = place.sh("NEW/DIR 'Once upon a time'").stdout.decode()
    assert shown.startswith(re.search(r"^Once upon.*", section("Text"), re.M)[0][:100]), shown


def vectors(folder, tools):
    """The program of the page prints what sentence-transformers gives, of every kind of folder that it speaks of."""
    imported, built, headed, dense, alone = blocks("Vectors", "sh")
    tools.expect(SENTENCE in built, "other commands")
    for name in ("mean_odd", "tanh_odd", "linear_odd"):
        place = Place(os.path.join(folder, name), "sentences/" + name, tools)
        text = place.vocabulary(numbers(place.file("DIR/in.tokens.npy")), 37)
        place.write("main.c", blocks("Vectors", "c")[0])
        if name == "mean_odd":
            place.sh(imported)
            place.warnings()
        else:
            notes = place.sh(imported.splitlines()[0]).err
            both = "The weights are --weights DIR/model.safetensors,dense.0=DIR/2_Dense/model.safetensors\n"
            tools.expect(both in notes, notes)
            place.sh(dense)
        printed = place.sh(built.replace(SENTENCE, '"%s"' % text)).out
        close(tools, printed, numbers(place.file("DIR/out.pooled.npy")))
        place.sh(alone + "attnc import DIR -o alone.attn && grep '^    head pooler$' alone.attn")

    place = Place(os.path.join(folder, "plain"), "fixtures/bert_odd", tools)
    ids = [5, 17, 30, 8, 21, 6]
    text = place.vocabulary(ids, 37)
    place.write("main.c", blocks("Vectors", "c")[0])
    place.sh(imported.splitlines()[0] + "\n" + headed + imported.splitlines()[1])
    printed = place.sh(built.replace(SENTENCE, '"%s"' % text)).out
    npy.write(place.file("tokens.npy"), ids)
    place.sh("attnc run embedder.attn --engine interp --weights DIR/model.safetensors --in tokens=tokens.npy "
             "--out hidden=hidden.npy")
    hidden = numbers(place.file("hidden.npy"))
    width = len(hidden) // len(ids)
    mean = [sum(hidden[i::width]) / len(ids) for i in range(width)]
    close(tools, printed, [x / sum(y * y for y in mean) ** 0.5 for x in mean])
    tools.expect("usage: embedder" in place.sh("./embedder", status=1).err, "no usage")


def text(folder, tools):
    """The program of the page continues texts as PyTorch does, and prints what the page shows."""
    place = Place(os.path.join(folder, "writer"), STORY, tools)
    imported, built = blocks("Text", "sh")
    place.write("main.c", blocks("Text", "c")[0])
    place.sh(imported)
    place.warnings()
    tools.expect(place.sh(built).out == blocks("Text", "text")[0], "the page shows another tale")
    with open(os.path.join(STORY, "expected.json"), encoding="utf-8") as file:
        for case in json.load(file):
            told = tools.run(place.file("writer"), "writer.attnw", "DIR/tokenizer.json", case["text"],
                             cwd=place.path).out
            whole = case["text"] + case["continued_text"]
            tools.expect(len(told) > len(case["text"]) + 60 and whole.startswith(told[:-1]), told)
    for long in ("", "Once upon a time. " * 400):
        tools.run(place.file("writer"), "writer.attnw", "DIR/tokenizer.json", long, cwd=place.path)


def by_hand(folder, tools):
    """The page's spec computes PyTorch's logits of a model whose type is unknown, from one file of weights, from two,
    and from a packed one."""
    place = Place(os.path.join(folder, "mine"), "fixtures/llama_odd", tools)
    place.config(model_type="mine", architectures=["MineForCausalLM"])
    place.sh("attnc import DIR -o mine.attn", status=1)
    place.write("mine.attn", blocks("A spec by hand", "attn")[0])
    listed, run = blocks("A spec by hand", "sh")
    done = place.sh(listed)
    tools.expect("head.weight" not in done.out and done.err == "", done.out + done.err)
    names = place.sh(blocks("After a refusal", "sh")[0]).out
    tools.expect("model.layers.1.mlp.gate_proj.weight [11, 12]\n" in names, names)
    shutil.copy(place.file("DIR/in.tokens.npy"), place.file("tokens.npy"))
    for command in (run, run, run.replace("DIR", "DIR/model.safetensors.index.json"),
                    "attnc pack mine.attn --weights DIR/model-1.safetensors,DIR/model-2.safetensors -o mine.attnw\n"
                    + run.replace("DIR", "mine.attnw")):
        place.sh(command)
        tools.expect_close([numbers(place.file("logits.npy"))], [numbers(place.file("DIR/out.logits.npy"))], 2e-5)
        shards(place.file("DIR"))
    place.config(model_type="llama", architectures=["LlamaForCausalLM"])
    place.sh("attnc import DIR -o llama.attn")  # of the index and its shards
    other = blocks("A spec by hand", "attn")[0].replace("d_ff 11", "d_ff 10")
    place.write("other.attn", other)
    place.sh("attnc compile other.attn -o . --weights mine.attnw", status=1)


def gguf_file(folder, tools):
    """The commands on a file of a fixture, whose logits follow."""
    place = Place(os.path.join(folder, "gguf_file"), "fixtures/llama_odd", tools)
    with open(place.file("F.gguf"), "wb") as file:
        file.write(gguf.convert(place.file("DIR")))
    shutil.copy(place.file("DIR/in.tokens.npy"), place.file("tokens.npy"))
    for block in blocks("A GGUF file", "sh"):
        place.sh(block)
    tools.expect_close([numbers(place.file("logits.npy"))], [numbers(place.file("DIR/out.logits.npy"))], 2e-5)
    tools.expect(os.path.exists(place.file("model.attnw")), "no packed weights")


def shards(folder):
    """Cuts model.safetensors into two files and an index, where it is there."""
    if os.path.exists(os.path.join(folder, "model.safetensors")):
        safetensors.split(folder, lambda names: (sorted(names)[::2], sorted(names)[1::2]))


def bounds(folder, tools):
    """The table of what --seq costs is what the header says."""
    place = Place(os.path.join(folder, "bounds"), STORY, tools)
    table = re.findall(r"^\| `(\d+)` \| (\d+) \| (\d+) \|$", section("Rows"), re.M)
    tools.expect(len(table) == 3, "%d rows" % len(table))
    for seq, state, workspace in table:
        place.sh("attnc import DIR -o s.attn --seq %s --name s && attnc compile s.attn -o ." % seq)
        with open(place.file("s.h"), encoding="utf-8") as file:
            header = file.read()
        found = re.search(r"S_STATE_BYTES S_CAST\(size_t, (\d+)u", header)[1]
        both = re.search(r"S_WORKSPACE_BYTES\(threads\) \(S_CAST\(size_t, (\d+)u\) \+ "
                         r"(?:\\\s+)?S_CAST\(size_t, threads\) \* S_CAST\(size_t, (\d+)u\)", header)
        tools.expect((found, int(both[1]) + int(both[2])) == (state, int(workspace)), seq + ": " + found + both[0])
        tools.expect(0 <= int(state) - int(seq) * 8 * 4 * 2 * 24 < 512, "another cost of a row")


TOKENIZER = ("""echo '{"normalizer": {"type": "BertNormalizer", "lowercase": true}}' >DIR/tokenizer.json; """
             "echo '%s' >DIR/tokenizer_config.json; ")
# What stands in the tables: what provokes it is a fixture, keys of its config, and options of import.
NOTES = {
    "tensors that the spec does not use": ("sentences/mean_odd", {}, ""),
    "is not obeyed": ("fixtures/gemma3_odd", {"attn_logit_softcapping": 5}, ""),
    "is not read": ("fixtures/biogpt_odd", {"layer_norm_eps": 0.1}, ""),
    "as --ignore-key says": ("fixtures/llama_odd", {"mine": 1}, "--ignore-key mine"),
    "is left out: the head of": ("fixtures/roformer_masked", {"architectures": ["RoFormerForMultipleChoice"]}, ""),
    "rows, and the bound is 2048": ("fixtures/llama_odd", {"max_position_embeddings": 131072}, ""),
    "outside the vocabulary and left out": ("fixtures/llama_odd", {"eos_token_id": 4000}, ""),
    "it is the head": ("fixtures/mistral_odd", {"tie_word_embeddings": True}, ""),
    "The bias of the head is": ("fixtures/bert_own_head", {"tie_word_embeddings": False},
                                "LC_ALL=C sed -i s/predictions.decoder.bias/predictions.decoder.bia_/ DIR/*rs; "),
    "takes its place": ("fixtures/clip_instead_part_text", {}, "--part text"),
    "an odd number": ("fixtures/glm4_odd", {"partial_rotary_factor": 0.25, "rope_parameters": None}, ""),
    "the biases of": ("fixtures/bloom_exact", {}, ""),
    "programs obey tokenizer.json": ("fixtures/bert_odd", {}, TOKENIZER % '{"do_lower_case": false}'),
    "tokenizer_config.json names": ("fixtures/bert_odd", {}, TOKENIZER % '{"pad_token": "[PAD]"}'),
    "The weights are --weights": ("sentences/max_odd", None, ""),
}
REFUSALS = {
    "there is no such folder": ("fixtures/llama_odd", {}, "some/model"),
    "unknown for model_type": ("fixtures/llama_odd", {"mine": 1}, ""),
    "is unknown; the nearest is": ("fixtures/llama_odd", {"model_type": "lama"}, ""),
    "which cannot be imported": ("fixtures/llama_odd", {"model_type": "mamba"}, ""),
    "is understood": ("fixtures/llama_odd", {"hidden_act": "celu"}, ""),
    "its pickle is refused": ("fixtures/llama_odd", {}, "rm DIR/model.safetensors; printf '\\200\\2\\212\\nl\\374\\234F"
                              "\\371 j\\250P\\31.cos\\nsystem\\n.' >DIR/pytorch_model.bin; "),
    "quantization_config": ("fixtures/llama_odd", {"quantization_config": {"bits": 4}}, ""),
    "a GGUF file": ("fixtures/llama_odd", {}, "mv DIR/model.safetensors DIR/model.gguf; "),
    "unknown for architecture": ("fixtures/llama_odd", {"more_keys": [("llama.unheard_of", 1)]}, "m.gguf"),
    "that the spec does not use": ("fixtures/llama_odd", {"more_tensors": [("a.weight", [1], [1.0])]}, "m.gguf"),
    "has the shape": ("fixtures/llama_odd", {"intermediate_size": 10}, ""),
    "is missing": ("fixtures/llama_odd", {"hidden_size": "absent"}, ""),
    "no tensor": ("fixtures/llama_odd", {"num_hidden_layers": 3}, ""),
    "adapter_config.json": ("fixtures/llama_odd", {}, "echo '{}' >DIR/adapter_config.json; "),
}


def provoked(folder, tools, title, table, status):
    told = [word for row in rows(title) for word in row]
    tools.expect(sorted(told) == sorted(table), "the page has %s" % told)
    for i, (words, (fixture, keys, more)) in enumerate(table.items()):
        place = Place(os.path.join(folder, "%s%d" % (title[0], i)), fixture, tools)
        if more == "m.gguf":
            with open(place.file(more), "wb") as file:
                file.write(gguf.convert(place.file("DIR"), **keys))
        elif keys:
            place.config(**keys)
        first, option = (more, "") if "DIR" in more else ("", more if more.startswith("--") else "")
        given = more if more in ("some/model", "m.gguf") else "DIR"
        said = place.sh("%sattnc import %s -o s.attn %s" % (first, given, option), status=status).err
        tools.expect(words in said, "%s: %s" % (words, said))
        tools.expect(bool(glob.glob(place.file("s.attn"))) == (status == 0), "%s: a spec, or none" % words)


def notes(folder, tools):
    provoked(folder, tools, "Notes", NOTES, 0)


def refusals(folder, tools):
    provoked(folder, tools, "After a refusal", REFUSALS, 1)


HEADS = {
    "head logits": ("llama_odd", "gpt2_odd", "bart_odd", "t5_odd"),
    "head pooler classifier": ("bert_classifier", "roberta_classifier", "albert_classifier"),
    "head pool last skip PAD classifier": ("llama_classifier", "gpt2_classifier"),
    "head pool cls classifier": ("vit_classifier", "deit_classifier"),
    "head pooler": ("bert_odd", "vit_odd"),
    "head classifier": ("bert_answers", "modernbert_labels", "llama_labels", "gpt2_answers"),
    "head logits … transform": ("bert_masked", "modernbert_biased", "roformer_masked"),
    "head pool mean classifier N transform": ("modernbert_classifier",),
    "head pool last": ("clip_text_odd",),
    "head pool last token END pooler classifier": ("bart_classifier", "mbart_classifier", "t5_classifier"),
    "": ("llama_plain", "gpt2_plain", "bart_plain", "t5_encoder"),
}


def heads(folder, tools):
    """The table of classes, by a folder of each row."""
    for head, fixtures in HEADS.items():
        tools.expect("`" + head in section("Which head comes out"), "no word about " + head)
        for name in fixtures:
            spec = os.path.join(folder, name + ".attn")
            tools.run(tools.ATTNC, "import", os.path.join(PARITY, "fixtures", name), "-o", spec)
            with open(spec, encoding="utf-8") as file:
                found = re.findall(r"^    (head .*)$", file.read(), re.M)
            begin = re.sub(" (N|PAD|END|…) ", " .* ", head)
            tools.expect(len(found) == bool(head) and all(re.match(begin, line) for line in found),
                         "%s: %s" % (name, found))


def families(folder, tools):
    """The table of families is that of the compiler, and every type has a model that is compared."""
    page, program = os.path.join(ROOT, "docs", "models.md"), os.path.join(ROOT, "build", "family_tables")
    fixtures, other = os.path.join(PARITY, "fixtures"), os.path.join(folder, "page.md")
    tools.run("make", "-s", "build/family_tables", cwd=ROOT)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    tools.expect(tools.run(program, page, fixtures).out == text, "the page is old: make family-tables")
    for wrong, why in ((text.replace("<!-- families -->\n", ""), "no table"),
                       (text[:text.index("<!-- end -->")], "no table"),
                       (text + "<!-- families -->\n<!-- end -->\n", "twice")):
        with open(other, "w", encoding="utf-8") as file:
            file.write(wrong)
        tools.expect(why in tools.run(program, other, fixtures, status=1).err, "no word of " + why)
    os.makedirs(os.path.join(folder, "few", "bert"))
    shutil.copy(os.path.join(fixtures, "bert_odd", "config.json"), os.path.join(folder, "few", "bert"))
    few = tools.run(program, page, os.path.join(folder, "few"), status=1)
    tools.expect("no fixture has the type `ernie`" in few.err, "a family without a model")
