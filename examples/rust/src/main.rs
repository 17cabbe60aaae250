//! Turns dates as people write them into ISO 8601, with the crate that `attnc rust` writes of examples/dates.

use dates::{Error, Model, Search, SourceInputs, SOURCE_SEQ, START_TOKEN};

/// Characters whose ids are 1, 2 and so on; 0 is any other one.
const SYMBOLS: &str = " 0123456789abcdefghijklmnopqrstuvwxyz',-./";

fn id_of(c: char) -> i32 {
    SYMBOLS.find(c.to_ascii_lowercase()).map_or(0, |at| at as i32 + 1)
}

fn symbol_of(id: i32) -> Option<char> {
    SYMBOLS.chars().nth(usize::try_from(id - 1).ok()?)
}

/// Reads each text with the encoder, all of them in one call, and writes a date for each with the decoder.
fn translate(model: &Model, texts: &[String]) -> Result<Vec<String>, Error> {
    let texts: Vec<Vec<i32>> = texts.iter().map(|text| text.chars().take(SOURCE_SEQ).map(id_of).collect()).collect();
    let sources = model.encode(&SourceInputs {
        lengths: &texts.iter().map(Vec::len).collect::<Vec<_>>(),
        source: &texts.concat(),
    })?;
    let mut dates = Vec::new();
    for source in &sources {
        let mut date = String::new();
        for token in model.generate(source, &[START_TOKEN], &Search::default())? {
            date.extend(symbol_of(token?));
        }
        dates.push(date);
    }
    Ok(dates)
}

fn main() -> Result<(), Error> {
    let texts: Vec<String> = std::env::args().skip(1).collect();
    if texts.is_empty() {
        eprintln!("usage: reads_dates DATE...");
        std::process::exit(2);
    }
    let model = Model::bundled()?;
    for (text, date) in texts.iter().zip(translate(&model, &texts)?) {
        println!("{text}\t{date}");
    }
    Ok(())
}
