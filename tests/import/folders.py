"""attnc import on what is no folder of config.json and model.safetensors: the error says what it is, and what to do."""
import json
import os
import shutil
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BERT = os.path.join(os.path.dirname(HERE), "parity", "fixtures", "bert_odd")
RESAVE = "transformers.BertModel.from_pretrained(\"%s\"%s).save_pretrained(\"%s\")"
ADAPTER = dict(peft_type="LORA", task_type="SEQ_CLS", base_model_name_or_path="org/base-7b")

# Beside config.json: the files there, and what the error says; @ is the folder.
WITHOUT_WEIGHTS = {
    "part_of_pickle": (("pytorch_model-00001-of-00002.bin",),
                       "pytorch_model.bin.index.json, which lists the parts, is missing"),
    "tensorflow": (("tf_model.h5",), "below 5", RESAVE % ("@", ", from_tf=True", "@")),
    "flax": (("flax_model.msgpack",), "below 5", RESAVE % ("@", ", from_flax=True", "@")),
    "onnx": (("model.onnx",), "model.onnx", "exported from"),
    "onnx_folder": (("onnx/model.onnx",), "but onnx", "exported from"),
    "gguf_beside": (("a.gguf",), "@/a.gguf: a GGUF file", "attnc import @/a.gguf -o SPEC"),
    "other_name": (("weights.safetensors",), "weights.safetensors is the whole model, give it that name"),
    "part": (("model-00001-of-00002.safetensors",), "model.safetensors.index.json, which lists the parts, is missing"),
    "consolidated_beside": (("consolidated.00.pth",), "consolidated.00.pth"),
    "no_weights_at_all": (("tokenizer.json",), "nor any other weights"),
}
# The same without config.json.
WITHOUT_CONFIG = {
    "pipeline": (("model_index.json", "unet/config.json"), "model_index.json", "pipeline", "@/text_encoder"),
    "meta": (("params.json", "consolidated.00.pth", "tokenizer.model"), "consolidated.00.pth",
             "convert_llama_weights_to_hf.py"),
    "mistral": (("params.json", "consolidated.safetensors", "tekken.json"), "consolidated.safetensors"),
    "tokenizer": (("tokenizer.json", "vocab.txt", "special_tokens_map.json"), "a tokenizer alone"),
    "cache": (("snapshots/0123abcd/config.json", "refs/main"), "attnc import @/snapshots/0123abcd -o SPEC"),
    "inside": (("tokenizer.json", "checkpoint-500/config.json"), "attnc import @/checkpoint-500 -o SPEC"),
    "weights_alone": (("model.safetensors",), "no config.json beside model.safetensors"),
    "pickle_alone": (("pytorch_model.bin",), "no config.json beside pytorch_model.bin"),
    "graph_alone": (("model.onnx",), "only model.onnx"),
    "gguf_alone": (("model.Q4_0.gguf",), "attnc import @/model.Q4_0.gguf -o SPEC"),
    "anything": (("notes.txt",), "no config.json", "as transformers saves it"),
    "nothing": ((), "the folder is empty"),
}
# Files: name, what is in it, what the error says; @ is the folder.
FILES = {
    "safetensors": ("model.safetensors", b"", "weights alone", "attnc import @ -o SPEC"),
    "index": ("model.safetensors.index.json", b"{}", "weights alone", "attnc import @ -o SPEC"),
    "tokenizer_file": ("tokenizer.json", b"{}", "one file of a model", "attnc import @ -o SPEC"),
    "gguf": ("model.gguf", b"", "it does not begin with `GGUF`"),
    "gguf_by_content": ("model.x", b"GGUF\3\0\0\0", "the file ends within its header"),
    "onnx_file": ("model.onnx", b"\x08\x07", "an ONNX graph"),
    "npz": ("model.npz", b"PK\3\4", "archive of numpy"),
    "npy": ("model.dat", b"\x93NUMPY\1\0", "an array of numpy"),
    "torch": ("model.bin", b"PK\3\4", "weights as PyTorch saves them", "pytorch_model.bin"),
    "torch_index": ("pytorch_model.bin.index.json", b"{}", "weights alone", "attnc import @ -o SPEC"),
    "h5": ("model.h5", b"\x89HDF", "HDF5"),
    "spec": ("model.attn", b"model m {}", "a spec already"),
    "archive": ("model.tar.gz", b"\x1f\x8b", "unpack it"),
    "text": ("README", b"Hello", "is a file"),
}


def refused(run, report, name, path, folder, said):
    spec = os.path.join(folder, "out.attn")
    result = run("import", path, "-o", spec)
    missing = [word for word in said if word.replace("@", folder) not in result.stderr]
    lines = result.stderr.count("\n")
    report(result.returncode == 1 and not missing and lines == 1 and not os.path.exists(spec), "folder/" + name,
           "status %d, not said: %s\n%s" % (result.returncode, missing, result.stderr))


def place(files, config):
    folder = tempfile.mkdtemp()
    for name in files:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"{}")
    if config:
        shutil.copy(os.path.join(BERT, "config.json"), folder)
    return folder


def adapters(run, report):
    for name, files in (("adapter", ()), ("adapter_of_model", ("config.json", "model.safetensors"))):
        folder = place(files, False)
        with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump(ADAPTER, file)
        refused(run, report, name, folder, folder, ("an adapter (LORA) on top of org/base-7b",
                "peft.AutoPeftModelForSequenceClassification.from_pretrained(\"@\")", "merge_and_unload"))
        shutil.rmtree(folder)


def names(run, report):
    scratch = tempfile.mkdtemp()
    for name in ("no-such-model-uncased", "some-owner/no-such-model-7B"):
        refused(run, report, "hub_" + name.replace("/", "_"), name, scratch,
                ("there is no such folder", "hf download %s --local-dir %s`" % (name, name.split("/")[-1])))
    for name in ("./no-such", "no/such/folder", "/no/such", "no such", "../no"):
        result = run("import", name, "-o", os.path.join(scratch, "out.attn"))
        said = "%s: there is no such folder" % name in result.stderr and "download" not in result.stderr
        report(result.returncode == 1 and said,
               "folder/path_" + name.replace("/", "_").replace(" ", "_"), result.stderr)
    refused(run, report, "empty_name", "", scratch, ("name of the folder to import is empty",))
    for name, path in (("config", "config.json"), ("slash", "")):
        spec = os.path.join(scratch, name)
        result = run("import", os.path.join(BERT, path), "-o", spec)
        report(result.returncode == 0 and os.path.exists(spec), "folder/by_" + name, result.stderr)
    comma = os.path.join(scratch, "a,b")
    shutil.copytree(BERT, comma)
    refused(run, report, "comma", comma, scratch, ("@/a,b: --weights takes a comma",))
    shutil.rmtree(scratch)


def check(run, report):
    for table, config in ((WITHOUT_WEIGHTS, True), (WITHOUT_CONFIG, False)):
        for name, (files, *said) in table.items():
            folder = place(files, config)
            refused(run, report, name, folder, folder, said)
            shutil.rmtree(folder)
    for name, (file_name, content, *said) in FILES.items():
        folder = place((), False)
        path = os.path.join(folder, file_name)
        with open(path, "wb") as file:
            file.write(content)
        refused(run, report, name, path, folder, said)
        shutil.rmtree(folder)
    adapters(run, report)
    names(run, report)
