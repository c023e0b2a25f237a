//! Data on stdout, talk on stderr.

use crate::{args::Global, fail::Failure};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Tables are so wide when nobody tells how wide the terminal is.
const WIDTH: u16 = 80;

/// Writes an object, on a line of its own.
pub(crate) fn object(object: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(object).map_err(anyhow::Error::from)?;
    line(&json)
}

/// Writes a line.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.write_all(b"\n")?)
}

/// Writes a table with a row of names above.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: Vec<[String; N]>,
) -> Result<(), Failure> {
    let mut table = empty_table();
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| visible(&cell))));
    for (index, name) in header.iter().enumerate() {
        // These are copied into the next command.
        if let Some(column) = table.column_mut(index).filter(|_| ["id", "fence"].contains(name)) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    // Numbers stand below each other.
    for index in 0..N {
        let numbers = table.column_cells_iter(index).flatten().all(is_number);
        if let Some(column) = table.column_mut(index).filter(|_| numbers) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    line(&table.trim_fmt())
}

fn is_number(cell: &Cell) -> bool {
    cell.content().bytes().all(|b| b.is_ascii_digit())
}

/// Writes names and values below each other.
pub(crate) fn pairs(pairs: Vec<(&str, String)>) -> Result<(), Failure> {
    let mut table = empty_table();
    table.add_rows(pairs.into_iter().map(|(name, value)| [name.to_owned(), visible(&value)]));
    line(&table.trim_fmt())
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(WIDTH);
    }
    table
}

/// Talks, unless it shall be quiet or everything is for programs.
pub(crate) fn talk(global: &Global, text: &str) {
    if !global.quiet && !global.json {
        // Talk that nobody hears is no failure.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Text of strangers made harmless for a terminal.
pub(crate) fn visible(text: &str) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// The beginning of a text.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
