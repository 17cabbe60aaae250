#!/usr/bin/env python3
"""attnc rust: crates of every kind of model compute what attnc run and attnc generate compute, in one program that
links all of them; wrong inputs and weights are errors; the tests and doctests of a crate pass offline, without a
warning, also without weights and with a tokenizer; what a crate cannot have is refused, and nothing is left behind.
TAP on stdout."""
import array
import json
import os
import random
import re
import shutil
import sys
import wave

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, searches, turns  # noqa: E402
from lib.attnc import ATTNC, LONG, ROOT, TESTS, attnc, run, said  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from rust import carried  # noqa: E402
from rust.cases import CASES, DECODERS, main_of, sounds_of  # noqa: E402

CARGO = shutil.which("cargo") and shutil.which("rustc")
LIBRARIES = {"libonig-dev": "oniguruma.h", "libcjson-dev": "cjson/cJSON.h", "libutf8proc-dev": "utf8proc.h"}
STRICT = {"CFLAGS": "-O1", "RUSTFLAGS": "-D warnings", "CARGO_TERM_COLOR": "never", "CARGO_INCREMENTAL": "0"}
WORDS = {"w%d" % i: i for i in range(37)}
TOKENIZER = {
    "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "w1"}}
ENCODER = """model %s {
    d_model 16
    vocab 37
    encoder { seq <= 9, position learned, layers 1 { attention self { heads 2 }, ffn { d_ff 24, activation gelu } } }
    head pool mean l2
}
"""
NUMBERED = """use number_decoder::{Error, Model, Numbers, Search, StepInputs, StepWanted};

const NUMBERS: Numbers = Numbers {
    in_near: 2,
    in_first: 1,
    in_tilt: 0.5,
};

fn text(search: &Search) -> String {
    let model = Model::bundled().unwrap();
    let found = model.generate(&NUMBERS, &[3, 9, 20], search).unwrap();
    let words: Vec<String> = found.map(|token| token.unwrap().to_string()).collect();
    words.join(" ")
}

#[test]
fn texts_have_numbers() {
    let search = Search {
        max_new: 9,
        ..Search::default()
    };
    println!("\\ngreedy: {}", text(&search));
    println!("\\nbeams: {}", text(&Search { beams: 3, ..search }));
}

#[test]
fn states_keep_numbers() {
    let model = Model::bundled().unwrap();
    let other = Numbers {
        in_near: -4,
        ..NUMBERS
    };
    let (mut one, mut two) = (model.state(&NUMBERS).unwrap(), model.state(&other).unwrap());
    let expected = one.feed(&[3, 9, 20]).unwrap().logits;
    assert_ne!(two.feed(&[3, 9, 20]).unwrap().logits, expected);
    one.rewind(0).unwrap();
    for token in [3, 9] {
        one.step(token).unwrap();
    }
    let mut copy = one.fork().unwrap();
    assert_eq!(one.step(20).unwrap().logits, expected);
    copy.rewind(0).unwrap();
    assert_eq!(copy.feed(&[3, 9, 20]).unwrap().logits, expected);
    two.rewind(0).unwrap();
    let inputs = StepInputs {
        tokens: &[3, 9, 20],
        in_near: Some(&[2]),
        ..StepInputs::default()
    };
    let given = model.decode(&mut [&mut two], &inputs, StepWanted::ALL).unwrap();
    assert_eq!(given.logits, expected);
    two.rewind(0).unwrap();
    assert_eq!(two.feed(&[3, 9, 20]).unwrap().logits, expected);
    let both = model.step(&mut [&mut two, &mut model.state(&NUMBERS).unwrap()], &[1, 3]).unwrap();
    assert_eq!(both.logits[50..], model.state(&NUMBERS).unwrap().step(3).unwrap().logits[..]);
    let outside = Numbers {
        in_tilt: f32::NAN,
        ..NUMBERS
    };
    let refused = model.state(&outside).unwrap().step(3);
    assert!(matches!(refused, Err(Error::BadToken)), "{refused:?}");
}
"""
CODES = {"i32": "<i4", "f32": "<f4", "u8": "|u1"}


class Rust:
    def __init__(self, scratch):
        self.scratch = scratch
        self.target = os.path.join(scratch, "target")

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(*names)

    def cargo(self, folder, *words, status=0, **env):
        if not CARGO:
            raise Skip("cargo and rustc are missing")
        return run("cargo", *words, cwd=folder, status=status,
                   env={**STRICT, "CARGO_TARGET_DIR": self.target, **env})

    def crate(self, name, spec, *options):
        """A crate of this spec, whose C has one target, so that it is compiled quickly."""
        attnc("rust", spec, "-o", self.path(name), "--target", "scalar", *options, status=0)
        return self.path(name)

    # ------------------------------------------------------------------------------------------------ all kinds

    def numbers(self, name, case):
        """Random inputs of a case, in files: of every sequence as .npy, and of all of them as bytes. The names of the
        sequences' files."""
        pick = random.Random(name)
        files = [[] for _ in case.rows]
        for array_of, array_shape in case.inputs.items():
            whole = array.array({"i32": "i", "f32": "f", "u8": "B"}[array_shape.type])
            for s, (n, m) in enumerate(case.rows):
                shape = array_shape.shape(n, m)
                count = 1
                for size in shape:
                    count *= size
                if array_shape.type == "f32":
                    part = array.array("f", (pick.gauss(0, 1) for _ in range(count)))
                else:
                    part = array.array(whole.typecode, (pick.randrange(array_shape.ids) for _ in range(count)))
                    if array_shape.type == "u8":
                        part[::shape[1] + 1] = array.array("B", [1] * len(part[::shape[1] + 1]))
                whole += part
                path = self.path(name + ".in", "%s.%d.npy" % (array_of, s))
                npy.write(path, part, (1, *shape), CODES[array_shape.type])
                files[s] += ["--in", "%s=%s" % (array_shape.role or array_of, path)]
            with open(self.path(name + ".in", array_of), "wb") as file:
                file.write(whole.tobytes())
        return files

    def expected(self, name, case, spec):
        """The outputs of attnc run, of all sequences behind each other."""
        all_outputs = {output: array.array("f") for output in case.outputs}
        for s, files in enumerate(self.numbers(name, case)):
            outputs = []
            for output in case.outputs:
                outputs += ["--out", "%s=%s" % (output, self.path(name + ".in", output + ".npy"))]
            attnc("run", spec, "--weights", "random:1", *files, *outputs, "--engine", "interp", status=0)
            for output in case.outputs:
                got = npy.read(self.path(name + ".in", output + ".npy"))
                all_outputs[output] += array.array("f", got.numbers)
        return all_outputs

    def compare(self, name, case, expected):
        for output, wanted in expected.items():
            got = array.array("f")
            with open(self.path(name + ".out", output), "rb") as file:
                got.frombytes(file.read())
            assert len(got) == len(wanted), "%s: %s has %d numbers, not %d" % (name, output, len(got), len(wanted))
            worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(got, wanted))
            assert worst <= case.near, "%s: %s is off by %g" % (name, output, worst)

    def generated(self, name, spec, case, options):
        """The ids that attnc generate prints."""
        files = []
        prompt = npy.write(self.path(name + ".in", "prompt.npy"), case.prompt)
        files += ["--in", "tokens=" + prompt]
        for array_of, array_shape in case.source.items():
            path = self.path(name + ".in", "%s.0.npy" % array_of)
            read = npy.read(path)
            path = npy.write(path + ".one", read.numbers, read.shape[1:], CODES[array_shape.type])
            files += ["--in", "%s=%s" % (array_shape.role or array_of, path)]
        if "prefix_lengths" in case.inputs:
            files += ["--in", "prefix_length=" + npy.write(self.path(name + ".in", "none.npy"), [0], ())]
        done = attnc("generate", spec, "--weights", "random:1", *files, "--max-new", str(case.new), *options,
                     "--engine", "interp", status=0)
        return done.stdout.split()

    def test_every_kind(self):
        """One program with a crate for each kind, and the shared runtime in each of them."""
        always = {"pooled", "source_maps", "sound", "integers"}
        names = sorted(always.union(turns.in_turn(sorted(set(CASES) - always))))
        manifest = '[package]\nname = "kinds"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
        specs = {}
        for name in names:
            case = CASES[name]
            specs[name] = os.path.join(ROOT, case.spec)
            self.crate(name, specs[name], "--weights", "random:1")
            manifest += '%s = { path = "../%s" }\n' % (case.crate, name)
            for folder in (".in", ".out"):
                os.makedirs(self.path(name + folder))
        self.write(manifest, "kinds", "Cargo.toml")
        self.write(main_of(names), "kinds", "src", "main.rs")
        expected = {name: self.expected(name, CASES[name], specs[name]) for name in names}
        self.cargo(self.path("kinds"), "build", "-q", "--offline")
        printed = run(os.path.join(self.target, "debug", "kinds"), self.scratch, status=0).stdout
        for name in names:
            self.compare(name, CASES[name], expected[name])
        lines = dict(line.split(": ", 1) for line in printed.splitlines())
        for name in names:
            for search, (_, options) in DECODERS.items():
                if CASES[name].prompt:
                    got = lines["%s %s" % (name, search)].split()
                    wanted = self.generated(name, specs[name], CASES[name], options)
                    assert got == wanted, "%s %s: %s, not %s" % (name, search, got, wanted)
        assert lines["errors"] == "fine", printed
        if shutil.which("rustfmt"):
            for folder in [*(self.path(name) for name in names), os.path.join(ROOT, "examples", "rust")]:
                done = run("cargo", "fmt", "--check", cwd=folder)
                assert done.returncode == 0, said(done)[:2000]

    def test_searches_of_specs(self):
        """The tokens of attnc generate, by the search of the spec and with options that change it."""
        manifest = '[package]\nname = "carried"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
        specs = {name: searches.spec(self.scratch, name) for name in searches.SPECS}
        for name, spec in specs.items():
            self.crate(name, spec, "--weights", "random:1")
            manifest += '%s = { path = "../%s" }\n' % (name, name)
        self.write(manifest, "carried", "Cargo.toml")
        self.write(carried.program(), "carried", "src", "main.rs")
        self.cargo(self.path("carried"), "build", "-q", "--offline")
        printed = run(os.path.join(self.target, "debug", "carried"), status=0).stdout
        lines = dict(line.split(": ", 1) for line in printed.splitlines())
        for name, (_, _, prompt, source) in searches.SPECS.items():
            given = npy.write(self.path("given.npy"), prompt if source is None else source)
            for search, (_, options) in carried.SAME.items():
                wanted = attnc("generate", specs[name], "--weights", "random:1", "--engine", "interp", "--in",
                               "%s=%s" % ("tokens" if source is None else "source", given), *options, status=0)
                got = lines["%s %s" % (name, search)]
                assert got == wanted.stdout.strip(), "%s %s: %s, not %s" % (name, search, got, wanted.stdout)

    def test_numbers(self):
        """A state keeps the numbers with which it is made; the tokens are those of attnc generate."""
        spec = os.path.join(TESTS, "differential", "number_decoder.attn")
        crate = self.crate("number_decoder", spec, "--weights", "random:1")
        self.write(NUMBERED, "number_decoder", "tests", "numbers.rs")
        done = self.cargo(crate, "test", "--offline", "--", "--nocapture")
        given = [word for name, value, kind in (("tokens", [3, 9, 20], "<i8"), ("near", [2], "<i8"),
                                                ("first", [1], "<i8"), ("tilt", [0.5], "<f4"))
                 for word in ("--in", "%s=%s" % (name, npy.write(self.path(name + ".npy"), value, None, kind)))]
        for search, options in (("greedy", []), ("beams", ["--beam", "3"])):
            wanted = attnc("generate", spec, "--weights", "random:1", *given, "--max-new", "9", *options, "--engine",
                           "interp", status=0).stdout.strip()
            assert "%s: %s\n" % (search, wanted) in done.stdout, "%s: %s is not in:\n%s" % (search, wanted, done.stdout)
        if shutil.which("rustfmt"):
            os.remove(self.path("number_decoder", "tests", "numbers.rs"))
            self.cargo(crate, "fmt", "--check")

    # ------------------------------------------------------------------------------------------------ one crate

    def test_its_own_tests(self):
        """With weights and a tokenizer."""
        for package, header in LIBRARIES.items():
            if run("cc", "-E", "-include", header, "-x", "c", os.devnull).returncode:
                raise Skip("%s is missing" % package)
        tokenizer = self.write(json.dumps(TOKENIZER), "own.json")
        spec = self.write(ENCODER % "own", "own.attn")
        crate = self.crate("own", spec, "--weights", "random:1", "--tokenizer", tokenizer)
        self.write("""
use own::{Error, Inputs, Model, Tokenizer};

#[test]
fn texts_have_vectors() {
    let (model, tokenizer) = (Model::bundled().unwrap(), Tokenizer::bundled().unwrap());
    assert_eq!(tokenizer.encode("w3 w5  w7", true).unwrap(), [3, 5, 7]);
    assert_eq!(tokenizer.encode_most("w3 w5 w7", true, 2).unwrap(), [3, 5]);
    assert_eq!(tokenizer.encode_pair("w3", "w5 w6", 9).unwrap().0, [3, 5, 6]);
    assert_eq!(tokenizer.decode(&[3, 5]).unwrap(), "w3 w5");
    let mut stream = tokenizer.stream().unwrap();
    let parts: Vec<String> = [3, 40, 5].iter().map(|&id| stream.feed(id).unwrap()).collect();
    assert_eq!(parts, ["w3", "", " w5"]);
    assert_eq!(stream.finish().unwrap(), "");
    assert_eq!(stream.feed(7).unwrap(), "w7");
    assert_eq!(tokenizer.id("w9"), Some(9));
    assert_eq!(tokenizer.id("w\\0"), None);
    assert_eq!(tokenizer.size(), 37);
    let long = ["w1"; 20].join(" ");
    let vectors = model.embed(&tokenizer, &["w3 w5 w7", &long]).unwrap();
    let inputs = Inputs { tokens: &[3, 5, 7], ..Inputs::default() };
    assert_eq!(vectors[0], model.forward(&inputs).unwrap().pooled);
    assert_eq!(vectors.len(), 2);
    assert!(model.embed(&tokenizer, &[]).unwrap().is_empty());
    assert!(matches!(model.embed(&tokenizer, &[""]), Err(Error::Length { .. })));
}
""", "own", "tests", "texts.rs")
        done = self.cargo(crate, "test", "--offline")
        assert done.stdout.count("test result: ok") == 4, said(done)
        assert "texts_have_vectors ... ok" in done.stdout and "src/lib.rs" in done.stdout, said(done)

    def test_prompts(self):
        """The block `text` of the spec: prompts, lower case, and the end that is left out."""
        for package, header in LIBRARIES.items():
            if run("cc", "-E", "-include", header, "-x", "c", os.devnull).returncode:
                raise Skip("%s is missing" % package)
        tokenizer = self.write(json.dumps(TOKENIZER), "words.json")
        block = ('text { prompt query "W9 \\"w1\\"\\n\\x01 ", prompt "no-thing" "", default query, lower_case, '
                 'truncate left }')
        spec = self.write((ENCODER % "asks").replace("    head", "    %s\n    head" % block), "asks.attn")
        crate = self.crate("asks", spec, "--weights", "random:1", "--tokenizer", tokenizer)
        if shutil.which("rustfmt"):
            done = run("cargo", "fmt", "--check", cwd=crate)
            assert done.returncode == 0, said(done)[:2000]
        self.write("""
use asks::{Error, Inputs, Model, Prompt, Tokenizer, PROMPTS, SEQ};

#[test]
fn prompts_stand_before_texts() {
    let (model, tokenizer) = (Model::bundled().unwrap(), Tokenizer::bundled().unwrap());
    let pooled = |tokens: &[i32]| model.forward(&Inputs { tokens, ..Inputs::default() }).unwrap().pooled;
    assert_eq!(model.embed(&tokenizer, &["W3"]).unwrap()[0], pooled(&[9, 1, 1, 3]));
    for (prompt, tokens) in [
        (Prompt::Default, &[9, 1, 1, 3][..]),
        (Prompt::Named("query"), &[9, 1, 1, 3]),
        (Prompt::Named("no-thing"), &[3]),
        (Prompt::Text("W5 "), &[5, 3]),
    ] {
        assert_eq!(model.embed_with(&tokenizer, &["w3"], prompt).unwrap()[0], pooled(tokens));
    }
    let words: Vec<String> = (0..SEQ + 5).map(|i| format!("W{}", i % 30)).collect();
    let last: Vec<i32> = (5..SEQ as i32 + 5).map(|i| i % 30).collect();
    assert_eq!(model.embed(&tokenizer, &[&words.join(" ")]).unwrap()[0], pooled(&last));
    assert_eq!(PROMPTS[0], ("query", "W9 \\"w1\\"\\n\\u{1} "));
    match model.embed_with(&tokenizer, &["w3"], Prompt::Named("quer")) {
        Err(Error::Tokenizer(why)) => assert!(why.contains("[\\"query\\", \\"no-thing\\"]"), "{why}"),
        other => panic!("{other:?}"),
    }
}
""", "asks", "tests", "prompts.rs")
        done = self.cargo(crate, "test", "--offline")
        assert "prompts_stand_before_texts ... ok" in done.stdout, said(done)
    def test_words_of_a_sound(self):
        """What generate of transformers writes for the sounds of tests/parity/sounds; and what is refused."""
        if not turns.has_turn("words of a sound", 3):
            raise Skip("every third commit; ATTNC_LONG=1 runs it")
        folder, spec = os.path.join(TESTS, "parity", "sounds", "several"), self.path("ear.attn")
        attnc("import", folder, "-o", spec, "--name", "ear", status=0)
        crate = self.crate("ear", spec, "--weights", folder)
        with open(os.path.join(folder, "told.json"), encoding="utf-8") as file:
            told = json.load(file)
        with open(os.path.join(folder, "generation_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        for i in range(len(told)):
            with wave.open(os.path.join(folder, "%d.wav" % i)) as file:
                samples = array.array("h", file.readframes(file.getnframes()))
            with open(self.path("ear", "%d.f32" % i), "wb") as file:
                file.write(array.array("f", (sample / 32768 for sample in samples)).tobytes())
        self.write(sounds_of(told, config), "ear", "tests", "words.rs")
        done = self.cargo(crate, "test", "--offline")
        assert "words_are_those_of_transformers ... ok" in done.stdout, said(done)
        assert done.stdout.count("test result: ok") == 4, said(done)

    def test_without_weights(self):
        """Names that are words of Rust, or not in its style; the tests run with the weights that they are told."""
        spec = self.write(ENCODER % "match", "match.attn")
        crate = self.crate("match", spec)
        attnc("pack", spec, "--weights", "random:2", "-o", self.path("match.attnw"), status=0)
        done = self.cargo(crate, "test", "--offline", MATCH_WEIGHTS=self.path("match.attnw"))
        assert done.stdout.count("test result: ok") == 3, said(done)
        assert not os.path.exists(self.path("match", "c", "match.attnw"))
        odd = self.crate("Odd__Name", self.write(ENCODER % "Odd__Name", "odd.attn"))
        self.cargo(odd, "build", "-q", "--offline")

    def test_a_compiler_that_fails(self):
        crate = self.crate("fails", self.write(ENCODER % "fails", "fails.attn"))
        done = self.cargo(crate, "build", "--offline", status=101, CC="/there/is/no/cc")
        assert "/there/is/no/cc" in done.stderr and "CC names a C compiler" in done.stderr, done.stderr
        done = self.cargo(crate, "build", "--offline", status=101, CFLAGS="-DATTN_RUNTIME_H")
        assert "ended with" in done.stderr, done.stderr

    # ------------------------------------------------------------------------------------------------ refusals

    def test_refusals(self):
        to = self.path("refused")
        taken = self.write(ENCODER % "attn_runtime", "taken.attn")
        spec = self.write(ENCODER % "fine", "fine.attn")
        tokenizer = {**TOKENIZER, "model": {**TOKENIZER["model"], "vocab": {"w%d" % i: i for i in range(38)}}}
        large = self.write(json.dumps(tokenizer), "large.json")
        for words, status, said_of in (
                (("rust", taken, "-o", to), 1, "attn_runtime"), (("rust", spec), 2, "-o DIR"),
                (("rust", spec, "-o", to, "--tokenizer", large), 1, "38 ids"),
                (("rust", spec, "-o", to, "--weights", self.path("none.safetensors")), 1, "none.safetensors"),
                (("rust", spec, "-o", to, "--target", "mmx"), 3, "mmx")):
            done = attnc(*words, status=status)
            assert said_of in done.stderr, done.stderr
            assert not os.path.exists(to), os.listdir(to)

    def test_page(self):
        """docs/rust.md: its spec, its command and its program."""
        if not LONG and not turns.turn() % 2:
            raise Skip("every other commit; ATTNC_LONG=1 runs it")
        with open(os.path.join(ROOT, "docs", "rust.md"), encoding="utf-8") as file:
            blocks = dict(re.findall(r"^```(attn|rust|sh)\n(.*?)^```$", file.read(), re.M | re.S))
        self.write(blocks["attn"], "reader.attn")
        run("bash", "-euc", blocks["sh"], cwd=self.scratch, status=0,
            env={"PATH": os.path.dirname(ATTNC) + os.pathsep + os.environ["PATH"]})
        self.write('[package]\nname = "page"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
                   'reader = { path = "../reader" }\n', "page", "Cargo.toml")
        self.write(blocks["rust"], "page", "src", "main.rs")
        done = self.cargo(self.path("page"), "run", "-q", "--offline")
        assert re.fullmatch(r"(\[-?0\.\d+(, -?0\.\d+){3}\]\n){2}", done.stdout), said(done)

    def test_example(self):
        """examples/rust reads dates."""
        if not LONG and turns.turn() % 2:
            raise Skip("every other commit; ATTNC_LONG=1 runs it")
        folder = self.path("reads_dates")
        shutil.copytree(os.path.join(ROOT, "examples", "rust"), folder)
        dates = os.path.join(ROOT, "examples", "dates")
        attnc("rust", os.path.join(dates, "dates.attn"), "--weights", os.path.join(dates, "dates.safetensors"), "-o",
              os.path.join(folder, "dates"), "--target", "scalar", status=0)
        done = self.cargo(folder, "run", "-q", "--offline", "--", "3rd of May '97", "thrusday 5 novmber 1955")
        assert done.stdout.split("\n")[:2] == ["3rd of May '97\t1997-05-03", "thrusday 5 novmber 1955\t1955-11-05"], \
            said(done)


sys.exit(run_tests("rust", Rust))
