"""The source of a program that searches as the specs of lib/searches.py say, and with fields of Search changed."""
from lib import searches

# Fields of Search, and options of attnc generate.
SAME = {
    "spec": ("", []),
    "cold": ("temperature: 0.0,", ["--temperature", "0"]),
    "warm": ("temperature: 0.7, seed: 3,", ["--temperature", "0.7", "--seed", "3"]),
    "cut": ("temperature: 1.5, top_k: 0, top_p: 1.0, min_p: 0.2, sequence: 4,",
            ["--temperature", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0.2", "--sequence", "4"]),
    "single": ("beams: 1, repetition_penalty: 1.0,", ["--beam", "1", "--repeat-penalty", "1"]),
    "wide": ("beams: 5, early_stopping: {crate}::EarlyStopping::Never, length_form: {crate}::LengthForm::Gnmt,",
             ["--beam", "5", "--early-stopping", "never", "--length-form", "gnmt"]),
    "exact": ("beams: 2, early_stopping: {crate}::EarlyStopping::Exact, length_penalty: -1.0,",
              ["--beam", "2", "--early-stopping", "exact", "--length-penalty", "-1"]),
    "short": ("max_new: 5, min_new: 0, min_length: 0, no_repeat_ngram: 0,",
              ["--max-new", "5", "--min-new", "0", "--no-repeat-ngram", "0"]),
    "long": ("min_new: 8, min_length: 0, ignore_end: true,", ["--min-new", "8", "--ignore-eos"]),
}

# A text that continues a state has the tokens of one that is fed as a whole; and what is refused.
STATES = """
fn states() {
    use penalties::{Error, Model, Search};
    let model = Model::bundled().unwrap();
    let all = |tokens: penalties::Generation<'_>| tokens.map(Result::unwrap).collect::<Vec<i32>>();
    let short = Search { max_new: 9, ..Search::default() };
    let whole = all(model.generate(&[7, 12, 7, 9], &short).unwrap());
    let mut state = model.state().unwrap();
    state.feed(&[7, 12, 5]).unwrap();
    state.rewind(2).unwrap();
    model.step(&mut [&mut state], &[7]).unwrap();
    let mut fork = state.fork().unwrap();
    state.feed(&[20, 21]).unwrap();
    let beams = Search { beams: 3, force_last: vec![], ..short.clone() };
    assert_eq!(all(fork.generate(&[9], &beams).unwrap()), all(model.generate(&[7, 12, 7, 9], &beams).unwrap()));
    assert_eq!(all(fork.generate(&[9], &short).unwrap()), whole);
    assert_eq!(fork.rows(), 3 + 1 + 8);
    for bad in [
        Search { min_p: 1.5, ..short.clone() },
        Search { repetition_penalty: -1.0, ..short.clone() },
        Search { no_repeat_ngram: usize::MAX, ..short.clone() },
        Search { bad_words: vec![vec![]], ..short.clone() },
        Search { beams: 2, temperature: 0.5, ..short.clone() },
    ] {
        let refused = model.generate(&[1], &bad);
        assert!(matches!(refused, Err(Error::BadOption)), "{bad:?}");
    }
    for bad in [
        Search { suppress: vec![41], ..short.clone() },
        Search { suppress_first: vec![-1], ..short.clone() },
        Search { bad_words: vec![vec![1, 41]], ..short.clone() },
        Search { force_first: vec![i32::MAX], ..short.clone() },
        Search { force_last: vec![-1], ..short },
    ] {
        assert!(matches!(model.generate(&[1], &bad), Err(Error::Token { .. })), "{bad:?}");
    }
    let long = by_beams::Model::bundled().unwrap().generate(&[4; 17], &by_beams::Search::default());
    assert!(matches!(long, Err(by_beams::Error::TooLong)), "{long:?}");
}
"""


def program():
    """The source; it prints a line for each spec and each search."""
    text = "//! Calls the crates of specs with a search.\n" + STATES + "\nfn main() {\n    states();\n"
    for name, (_, _, prompt, source) in searches.SPECS.items():
        text += "    let model = %s::Model::bundled().unwrap();\n" % name
        first = ""
        if source is not None:
            text += "    let inputs = %s::SourceInputs { lengths: &[%d], source: &%s };\n" % (name, len(source), source)
            text += "    let source = &model.encode(&inputs).unwrap()[0];\n"
            first = "source, "
        for search, (fields, _) in SAME.items():
            text += """    let search = %s::Search { %s ..%s::Search::default() };
    let tokens = model.generate(%s&%s, &search).unwrap().map(|token| token.unwrap().to_string());
    println!("%s %s: {}", tokens.collect::<Vec<_>>().join(" "));
""" % (name, fields.format(crate=name), name, first, prompt, name, search)
    return text + "}\n"
