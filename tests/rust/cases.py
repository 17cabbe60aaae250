"""The models whose crates are compared with attnc run, and the program that calls all of these crates."""
import dataclasses
import os
import typing


class Array(typing.NamedTuple):
    """An input: its type in files, ids below `ids`, the shape for n rows and m rows of the source, and its name for
    attnc where that is another one."""
    type: str
    shape: typing.Callable
    ids: int = 0
    role: str = ""


def ids(most, of_source=False):
    return Array("i32", (lambda n, m: (m,)) if of_source else (lambda n, m: (n,)), most)


def floats(*columns, of_source=False):
    return Array("f32", lambda n, m: (m if of_source else n, *columns))


def whole(*sizes):
    return Array("f32", lambda n, m: sizes)


@dataclasses.dataclass
class Case:
    spec: str
    inputs: dict
    outputs: list
    rows: list = dataclasses.field(default_factory=lambda: [(5, 0), (1, 0), (3, 0)])  # (n, m) of each sequence
    lengths: str = "lengths"
    source_lengths: str = ""
    optional: tuple = ()  # those of the inputs that are an Option
    more: bool = False    # inputs that are left out
    prompt: list = dataclasses.field(default_factory=list)
    new: int = 0
    source: dict = dataclasses.field(default_factory=dict)  # of encode
    near: float = 5e-5
    divided: bool = False  # a state gets the rows of the first sequence in two calls of decode

    @property
    def crate(self):
        return os.path.basename(self.spec)[:-5]


def case(spec, *arguments, **more):
    return Case("tests/differential/%s.attn" % spec, *arguments, **more)


PIXELS = {"pixels": whole(3, 12, 20)}
MEL = {"mel": whole(20, 70)}
SEGMENTED = {"source": ids(53, True), "segments": Array("i32", lambda n, m: (m,), 3)}
MASK = Array("u8", lambda n, m: (n, m or n), 2)
CASES = {
    "pooled": case("norm_post", {"tokens": ids(53), "segments": ids(3)}, ["hidden", "pooled", "logits"],
                   optional=("segments",)),
    "decoder": case("longrope", {"tokens": ids(41)}, ["hidden", "logits"], prompt=[3, 1, 4], new=20),
    "features": case("features", {"features": floats(35)}, ["hidden", "pooled"]),
    "two_widths": case("features_to_features", {"source_features": floats(30, of_source=True),
                                                "target_features": floats(18)}, ["encoder_hidden", "hidden"],
                       rows=[(4, 7), (2, 1)], source_lengths="source_lengths"),
    "documents": case("where_decoder_documents",
                     {"tokens": ids(50), "in_doc": Array("i32", lambda n, m: (n,), 4, "doc"),
                      "in_lead": Array("i32", lambda n, m: (n,), 2, "lead")}, ["hidden", "logits"], divided=True),
    "images": case("patches", PIXELS, ["logits", "pooled"], rows=[(16, 0), (16, 0)]),
    "sound": case("sound_to_tokens", {**MEL, "target": ids(61)}, ["encoder_hidden", "hidden", "logits"],
                  rows=[(4, 0), (9, 0)], source_lengths="source_lengths", prompt=[2], new=9, source=MEL),
    "spectrogram": case("convolutions", {"mel": whole(7, 29)}, ["logits"], rows=[(10, 0), (10, 0)]),
    "source": case("seq2seq_odd", {**SEGMENTED, "target": ids(61)}, ["encoder_hidden", "hidden", "logits"],
                   rows=[(4, 7), (2, 1)], source_lengths="source_lengths", optional=("segments",), prompt=[5, 6],
                   new=12, source=SEGMENTED),
    "source_maps": case("seq2seq_export", {"source": ids(41, True), "target": ids(41)},
                        ["encoder_attention", "attention", "cross_attention", "logits"], rows=[(4, 7), (6, 3)],
                        source_lengths="source_lengths", prompt=[7], new=8, source={"source": ids(41, True)}),
    "maps": case("export_some", {"tokens": ids(41)}, ["attention", "pooled"]),
    "mask": case("mask_given", {"tokens": ids(41), "mask": MASK}, ["hidden", "pooled"]),
    "given": case("alone_given", {"query": floats(32), "key": floats(32, of_source=True),
                                  "value": floats(32, of_source=True), "mask": MASK}, ["context", "attention"],
                  rows=[(5, 3), (2, 9)], source_lengths="key_lengths", optional=("value",)),
    "keys": case("alone_cross", {"query": floats(21), "key": floats(35, of_source=True),
                                 "value": floats(19, of_source=True)}, ["context"], rows=[(5, 3), (2, 9)],
                 source_lengths="key_lengths"),
    "prefix": case("prefix", {"tokens": ids(41), "prefix_lengths": Array("i32", lambda n, m: (), 4, "prefix_length")},
                   ["logits"], rows=[(5, 0), (4, 0), (7, 0)], optional=("prefix_lengths",), prompt=[1, 2], new=10),
    "unrolled": case("unrolled_masks", {"tokens": ids(19), "mask": MASK}, ["hidden"], rows=[(9, 0)]),
    "integers": case("cache_int8", {"tokens": ids(41)}, ["logits"], prompt=[3, 1, 4], new=12, near=2e-2),
}

# The searches: what Search has, and the options of attnc generate.
DECODERS = {
    "greedy": ("", []),
    "sampled": ("temperature: 0.9, top_k: 7, top_p: 0.95, seed: 3, sequence: 2,",
                ["--temperature", "0.9", "--top-k", "7", "--top-p", "0.95", "--seed", "3", "--sequence", "2"]),
    "least": ("min_new: 4,", ["--min-new", "4"]),
    "beams": ("beams: 3, length_penalty: 0.7, length_form: {crate}::LengthForm::Power,",
              ["--beam", "3", "--length-penalty", "0.7", "--length-form", "power"]),
}

HEAD = """//! Calls the crate of every kind of model.
use std::path::PathBuf;

fn read(folder: &str, name: &str) -> Vec<u8> {
    std::fs::read(root().join(folder).join(name)).unwrap()
}

// A run whose turn has few kinds of models calls some of these readers alone.
#[allow(dead_code)]
fn i32s(folder: &str, name: &str) -> Vec<i32> {
    read(folder, name).chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[allow(dead_code)]
fn usizes(folder: &str, name: &str) -> Vec<usize> {
    i32s(folder, name).into_iter().map(|n| n as usize).collect()
}

#[allow(dead_code)]
fn f32s(folder: &str, name: &str) -> Vec<f32> {
    read(folder, name).chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[allow(dead_code)]
fn bools(folder: &str, name: &str) -> Vec<bool> {
    read(folder, name).into_iter().map(|b| b != 0).collect()
}

fn write(folder: &str, name: &str, numbers: &[f32]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(root().join(folder).join(name), bytes).unwrap();
}

fn root() -> PathBuf {
    PathBuf::from(std::env::args().nth(1).unwrap())
}
"""

# The errors of a crate, and of models and states that do not belong together.
ERRORS = """
fn errors() {
    use norm_post::{Error, Inputs, Model, Options};
    let model = Model::bundled().unwrap();
    let bytes = read("pooled", "c/norm_post.attnw");
    let (cut, other) = (root().join("cut.attnw"), root().join("source_maps/c/seq2seq_export.attnw"));
    std::fs::write(&cut, &bytes[..bytes.len() - 4]).unwrap();
    for path in [&cut, &other, &root().join("Cargo.toml")] {
        let refused = Model::load(path);
        assert!(matches!(refused, Err(Error::BadWeights | Error::File { .. })), "{refused:?}");
    }
    assert!(matches!(Model::load(root()), Err(Error::BadWeights | Error::File { .. })));
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let checked = Options { verify: true, ..Options::default() };
    assert!(Model::from_bytes(&bytes, &checked).is_ok());
    assert!(matches!(Model::from_bytes(&damaged, &checked), Err(Error::BadWeights)));
    assert!(Model::from_bytes(&damaged, &Options::default()).is_ok());
    let unaligned: &'static [u8] = Box::leak([&[0], &bytes[..]].concat().into_boxed_slice());
    let copied = Model::from_static(&unaligned[1..], &Options::default()).unwrap();
    let inputs = Inputs { tokens: &[1, 2], ..Inputs::default() };
    assert_eq!(copied.forward(&inputs).unwrap(), model.forward(&inputs).unwrap());
    for (target, threads) in [("avx512", 1), ("sca\\0lar", 1), ("scalar", 257), ("scalar", 1 << 40)] {
        let options = Options { target: Some(target.to_string()), threads, ..Options::default() };
        assert!(matches!(Model::bundled_with(&options), Err(Error::NoTarget | Error::Threads { .. })));
    }
    let few = Inputs { lengths: &[2, 3], tokens: &[1; 4], ..Inputs::default() };
    let said = model.forward(&few).unwrap_err();
    assert_eq!(said.to_string(), "`tokens` has 4 elements, and the call needs 5: a null pointer, a struct of another \\
                                  size, or a bad count");
    for lengths in [&[2, 0][..], &[2, 41], &[usize::MAX], &[1 << 32, 1]] {
        let said = model.forward(&Inputs { lengths, tokens: &[1; 4], ..Inputs::default() });
        assert!(matches!(said, Err(Error::Length { .. })), "{said:?}");
    }
    for id in [-1, 53, i32::MIN, i32::MAX] {
        let said = model.forward(&Inputs { tokens: &[1, id], ..Inputs::default() }).unwrap_err();
        assert_eq!(said, Error::Token { array: "tokens", index: 1, id, ids: 53 });
        assert!(said.to_string().ends_with("an id is outside its table"), "{said}");
    }
    let segments = Inputs { tokens: &[1, 2], segments: Some(&[0, 3]), ..Inputs::default() };
    assert!(matches!(model.forward(&segments), Err(Error::Token { array: "segments", .. })));
    let mut outputs = norm_post::Outputs::default();
    let wanted = norm_post::Wanted { pooled: true, ..norm_post::Wanted::NONE };
    model.forward_into(&inputs, wanted, &mut outputs).unwrap();
    assert!(outputs.hidden.is_empty() && outputs.pooled.len() == norm_post::POOLED_WIDTH);
    model.forward_into(&inputs, norm_post::Wanted::NONE, &mut outputs).unwrap();
    assert!(outputs.pooled.is_empty());

    use seq2seq_export as pair;
    let (one, two) = (pair::Model::bundled().unwrap(), pair::Model::bundled().unwrap());
    let texts = pair::SourceInputs { lengths: &[2, 1], source: &[1, 2, 3] };
    let sources = one.encode(&texts).unwrap();
    assert!(matches!(two.state(&sources[0]), Err(pair::Error::OtherModel)));
    let mut state = one.state(&sources[0]).unwrap();
    drop(sources);
    drop(one);
    let kept = state.feed(&[1, 2]).unwrap();
    assert!(matches!(two.step(&mut [&mut state], &[1]), Err(pair::Error::OtherModel)));
    assert!(matches!(state.feed(&[]), Err(pair::Error::Length { .. })));
    assert!(matches!(state.feed(&[0; 39]), Err(pair::Error::BadLength)));
    assert!(matches!(state.rewind(3), Err(pair::Error::BadLength)));
    assert_eq!(state.rows(), 2);
    let model = state.model();
    let mut fork = state.fork().unwrap();
    fork.rewind(1).unwrap();
    assert_eq!(fork.step(2).unwrap().logits, kept.logits);
    assert!(matches!(model.step(&mut [], &[]), Err(pair::Error::BadArgument)));
    assert!(matches!(model.step(&mut [&mut state, &mut fork], &[1]), Err(pair::Error::Shape { .. })));
    let both = model.step(&mut [&mut state, &mut fork], &[1, 1]).unwrap();
    assert_eq!(both.logits[..41], both.logits[41..]);
    let search = pair::Search { max_new: 3, ..pair::Search::default() };
    let new: Vec<_> = state.generate(&[4], &search).unwrap().map(Result::unwrap).collect();
    assert_eq!(state.rows(), 3 + 1 + 2);
    let again: Vec<_> = fork.generate(&[4], &search).unwrap().map(Result::unwrap).collect();
    assert_eq!(new, again);
    for bad in [
        pair::Search { top_p: f64::NAN, temperature: 1.0, ..search.clone() },
        pair::Search { top_k: usize::MAX, temperature: 1.0, ..search.clone() },
        pair::Search { beams: 2, temperature: 1.0, ..search.clone() },
        pair::Search { min_new: 4, ..search.clone() },
    ] {
        assert!(matches!(state.generate(&[4], &bad), Err(pair::Error::BadOption)), "{bad:?}");
    }
    let end = pair::Search { end: vec![41], ..search.clone() };
    assert!(matches!(state.generate(&[4], &end), Err(pair::Error::Token { array: "end", .. })));
    assert!(matches!(state.generate(&[], &search), Err(pair::Error::BadArgument)));
    let beams = pair::Search { beams: 2, ..search };
    let rows = state.rows();
    assert_eq!(state.generate(&[4], &beams).unwrap().count(), 3);
    assert_eq!(state.rows(), rows);
}
"""

READ = {"i32": "i32s", "f32": "f32s", "u8": "bools"}


def fields(name, case_of, inputs, lengths):
    """The fields of an Inputs, with all arrays of the case."""
    lines = ["            lengths: &%s," % lengths[0]]
    if len(lengths) > 1:
        lines.append("            %s: &%s," % (case_of.source_lengths, lengths[1]))
    for array_of, array_shape in inputs.items():
        read = "usizes" if array_of == "prefix_lengths" else READ[array_shape.type]
        text = '&%s("%s.in", "%s")' % (read, name, array_of)
        lines.append("            %s: %s," % (array_of, "Some(%s)" % text if array_of in case_of.optional else text))
    return "\n".join(lines)


def divided_of(name, c):
    """The rows of a state have the bits of forward, and a call without one of the inputs is an error."""
    parts = "\n".join('                %s: &%s("%s.in", "%s")[from..until],' % (field, READ[shape.type], name, field)
                      for field, shape in c.inputs.items())
    return """        let mut state = model.state().unwrap();
        let width = outputs.hidden.len() / %d;
        for (from, until) in [(0, 2), (2, %d)] {
            let inputs = model_of::StepInputs {
                lengths: &[until - from],
%s
            };
            let step = model.decode(&mut [&mut state], &inputs, model_of::StepWanted::ALL).unwrap();
            assert_eq!(step.hidden, outputs.hidden[from * width..until * width]);
        }
        let short = model_of::StepInputs { tokens: &[0], ..model_of::StepInputs::default() };
        assert!(model.decode(&mut [&mut state], &short, model_of::StepWanted::ALL).is_err());
        assert_eq!(state.rows(), %d);
""" % (sum(n for n, _ in c.rows), c.rows[0][0], parts, c.rows[0][0])


def function_of(name):
    """The function that calls the crate of a case, by itself and in two threads at once."""
    c = CASES[name]
    lengths = [[n for n, _ in c.rows], [m for _, m in c.rows]] if c.source_lengths else [[n for n, _ in c.rows]]
    if c.source_lengths and not any(lengths[1]):
        lengths[1] = []  # all of them have the same length, which the crate knows
    text = """
fn %s() {
    use %s as model_of;
    let options = model_of::Options { threads: 2, least_work: 1, ..model_of::Options::default() };
    for model in [model_of::Model::bundled().unwrap(), model_of::Model::bundled_with(&options).unwrap()] {
        let call = || model.forward(&model_of::Inputs {
%s
        }).unwrap();
        let outputs = call();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(call(), outputs));
            }
        });
""" % (name, c.crate, fields(name, c, c.inputs, lengths))
    for output in c.outputs:
        text += '        write("%s.out", "%s", &outputs.%s);\n' % (name, output, output)
    if c.divided:
        text += divided_of(name, c)
    text += "    }\n"
    return text + (searches_of(name, c) if c.prompt else "") + "}\n"


def searches_of(name, c):
    """Prints the tokens of every search."""
    source = ""
    text = "    let model = model_of::Model::bundled().unwrap();\n"
    if c.source:
        lengths = [[m for _, m in c.rows]] if any(m for _, m in c.rows) else [[]]
        text += "    let sources = model.encode(&model_of::SourceInputs {\n%s\n    }).unwrap();\n" % fields(
            name, c, c.source, lengths)
        source = "&sources[0], "
    for search, (options, _) in DECODERS.items():
        text += """    let search = model_of::Search { max_new: %d, %s ..model_of::Search::default() };
    let tokens = model.generate(%s&%s, &search).unwrap().map(|token| token.unwrap().to_string());
    println!("%s %s: {}", tokens.collect::<Vec<_>>().join(" "));
""" % (c.new, options.format(crate=c.crate), source, c.prompt, name, search)
    return text


def main_of(names):
    """The source of the program."""
    calls = "".join("    %s();\n" % name for name in names)
    return HEAD + "".join(function_of(name) for name in names) + ERRORS + \
        '\nfn main() {\n%s    errors();\n    println!("errors: fine");\n}\n' % calls


# The tests of the words of a sound. TOLD has the number of each sound, the call, and its segments.
SOUNDS = """use ear::{Error, Model, SpeechTokens, Transcription};

type Told = &'static [(f64, f64, &'static [i32])];
const TOLD: &[(usize, &str, Told)] = &[
%(told)s
];
const FRENCH: i32 = %(french)d;
const TRANSCRIBE: i32 = %(transcribe)d;
const TRANSLATE: i32 = %(translate)d;

fn samples(number: usize) -> Vec<f32> {
    let bytes = std::fs::read(format!("{}/{number}.f32", env!("CARGO_MANIFEST_DIR"))).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn tokens() -> SpeechTokens {
    SpeechTokens {
        no_times: Some(%(no_times)d),
        latest_first: Some(%(latest)d),
        languages: vec!%(languages)s,
        never: vec!%(never)s,
        never_first: vec!%(never_first)s,
    }
}

const PLAIN: Transcription = Transcription { language: None, task: Some(TRANSCRIBE), times: false };

#[test]
fn words_are_those_of_transformers() {
    let model = Model::bundled().unwrap();
    for &(number, call, told) in TOLD {
        let wanted = match call {
            "plain" => PLAIN,
            "times" => Transcription { times: true, ..PLAIN },
            "translate" => Transcription { language: Some(FRENCH), task: Some(TRANSLATE), ..PLAIN },
            _ => Transcription { language: Some(FRENCH), times: true, ..PLAIN },
        };
        let found = model.transcribe(&samples(number), &tokens(), &wanted).unwrap();
        assert_eq!(found.len(), told.len(), "{number} {call}");
        for (segment, (begin, end, words)) in found.iter().zip(told) {
            assert_eq!(segment.tokens, *words, "{number} {call}");
            if wanted.times {
                assert!((segment.begin - begin).abs() < 1e-6 && (segment.end - end).abs() < 1e-6, "{segment:?}");
            }
        }
    }
}

#[test]
fn a_transcription_ends_early() {
    let (model, sound) = (Model::bundled().unwrap(), samples(0));
    let all = model.transcribe(&sound, &tokens(), &Transcription { times: true, ..PLAIN }).unwrap();
    let mut some = Vec::new();
    let tell = |segment| {
        some.push(segment);
        false
    };
    model.transcribe_each(&sound, &tokens(), &Transcription { times: true, ..PLAIN }, tell).unwrap();
    assert!(all.len() > 1 && some == all[..1]);
    let panics = std::panic::AssertUnwindSafe(|| model.transcribe_each(&sound, &tokens(), &PLAIN, |_| panic!("told")));
    let panic = std::panic::catch_unwind(panics).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"told"));
}

#[test]
fn wrong_tokens_are_errors() {
    let (model, sound) = (Model::bundled().unwrap(), samples(0));
    let refused = |tokens: SpeechTokens, wanted: Transcription| model.transcribe(&sound, &tokens, &wanted).unwrap_err();
    let never = SpeechTokens { never: vec![3, 999], ..tokens() };
    assert!(refused(never, PLAIN).to_string().starts_with("`never`[1] is 999, and ids are 0 to "));
    let times = SpeechTokens { no_times: Some(-2), ..tokens() };
    assert!(matches!(refused(times, PLAIN), Error::Token { array: "no_times", .. }));
    let task = Transcription { task: Some(i32::MAX), ..PLAIN };
    assert!(matches!(refused(tokens(), task), Error::Token { array: "task", .. }));
    let all = SpeechTokens { never: (0..ear::VOCAB as i32).collect(), ..tokens() };
    assert_eq!(refused(all, PLAIN), Error::NoToken);
    assert!(model.transcribe(&[], &tokens(), &PLAIN).is_ok(), "silence");
}
"""


def sounds_of(told, config):
    """The tests of sounds, of each of which `told` has {call: [[begin, end, tokens], ...]}, with the tokens of a
    generation_config.json."""
    lines = []
    for number, calls in enumerate(told):
        for call, segments in calls.items():
            parts = ", ".join("(%r, %r, &%s)" % (float(begin), float(end), words) for begin, end, words in segments)
            lines.append('    (%d, "%s", &[%s]),' % (number, call, parts))
    return SOUNDS % {
        "told": "\n".join(lines), "french": config["lang_to_id"]["<|fr|>"], **config["task_to_id"],
        "no_times": config["no_timestamps_token_id"], "latest": config["max_initial_timestamp_index"],
        "languages": list(config["lang_to_id"].values()), "never": config["suppress_tokens"],
        "never_first": config["begin_suppress_tokens"]}
