//! Data on stdout, talk on stderr.

use crate::{args::Global, fail::Failure};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Tables are so wide when nobody tells how wide the terminal is.
const WIDTH: u16 = 80;
/// What is copied into the next command: never split, however narrow the terminal is.
const COPIED: [&str; 5] = ["id", "queue", "fence", "worker", "fingerprint"];
/// Other columns are not narrower than this.
const LEGIBLE: u16 = 10;

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

/// Writes what is a text of many lines already.
pub(crate) fn bytes(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text)?;
    Ok(stdout.flush()?)
}

/// Writes a table with a row of names above.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: Vec<[String; N]>,
) -> Result<(), Failure> {
    line(&table_text(header, rows, terminal_width()))
}

fn table_text<const N: usize>(
    header: [&str; N],
    rows: Vec<[String; N]>,
    width: Option<u16>,
) -> String {
    let mut table = empty_table(width);
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| visible(&cell))));
    // Of wider ones comfy-table cannot tell the least width; without a terminal it need not.
    let measured = |content: &u16| width.is_some() && *content < u16::MAX - 2;
    let widths = table.column_max_content_widths();
    for ((index, name), content) in header.iter().enumerate().zip(widths) {
        let least = if COPIED.contains(name) { content } else { content.min(LEGIBLE) };
        if let Some(column) = table.column_mut(index).filter(|_| measured(&content)) {
            let width = Width::Fixed(least.saturating_add(2));
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
        }
    }
    // Numbers stand below each other.
    for index in 0..N {
        let numbers = table.column_cells_iter(index).flatten().all(is_number);
        if let Some(column) = table.column_mut(index).filter(|_| numbers) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn is_number(cell: &Cell) -> bool {
    cell.content().bytes().all(|b| b.is_ascii_digit())
}

/// Writes names and values below each other.
pub(crate) fn pairs(pairs: Vec<(&str, String)>) -> Result<(), Failure> {
    line(&pairs_text(pairs, terminal_width()))
}

fn pairs_text(pairs: Vec<(&str, String)>, width: Option<u16>) -> String {
    let names = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let Some(width) = width else {
        // As below, but a value may be as long as it likes.
        let line = |(name, value): &(&str, String)| format!(" {name:<names$}  {}", visible(value));
        let lines = pairs.iter().map(|pair| line(pair).trim_end().to_owned());
        return lines.collect::<Vec<_>>().join("\n");
    };
    let copied = pairs.iter().filter(|(name, _)| COPIED.contains(name)).map(|(_, id)| id.len());
    let least = copied.max().unwrap_or(0).max(LEGIBLE.into());
    // Each column has a space on both sides.
    let values = usize::from(width).saturating_sub(names + 2).max(least + 2);
    let mut table = empty_table(Some(width));
    table.add_rows(pairs.into_iter().map(|(name, value)| [name.to_owned(), visible(&value)]));
    for (index, width) in [names + 2, values].into_iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            let width = Width::Fixed(width.try_into().unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::Absolute(width));
        }
    }
    table.trim_fmt()
}

/// Without a width nothing is wrapped.
fn empty_table(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.force_no_tty().load_style(presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// None: nobody looks on, and a program reads lines.
fn terminal_width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    Some(Table::new().width().filter(|width| *width > 0).unwrap_or(WIDTH))
}

/// Talks, unless it shall be quiet or everything is for programs.
pub(crate) fn talk(global: &Global, text: &str) {
    if !global.quiet && !global.json {
        // Talk that nobody hears is no failure.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Says what must be heard also when it shall be quiet.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199f0a2-7c1b-7d3e-9f10-aabbccddeeff";

    #[test]
    fn an_id_is_never_split_and_without_a_terminal_nothing_is() {
        let long = "word ".repeat(200_000);
        let row = || [ID.to_owned(), "1".repeat(16), "k".repeat(100), "v w ".repeat(10_000)];
        let text = table_text(["id", "fence", "kind", "payload"], vec![row()], None);
        assert_eq!(text.lines().count(), 2, "{}", text.len());
        let pairs =
            || vec![("id", ID.to_owned()), ("payload", long.clone()), ("empty", String::new())];
        let text = pairs_text(pairs(), None);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains(long.trim_end()), "{}", text.len());

        for width in [1, 20, 80, 200] {
            let row = [ID.to_owned(), "1".repeat(16), "k".repeat(100), "x".repeat(300)];
            let text = table_text(["id", "fence", "kind", "payload"], vec![row], Some(width));
            assert!(text.contains(ID) && text.contains(&"1".repeat(16)), "{text}");
            assert!(text.contains(&"k".repeat(10)) && text.contains(&"x".repeat(10)), "{text}");
            let text = pairs_text(vec![("id", ID.to_owned()), ("p", "x".repeat(300))], Some(width));
            assert!(text.contains(ID), "{text}");
        }
        assert!(pairs_text(pairs(), Some(80)).contains(ID));
        let text = pairs_text(vec![("p", "x".repeat(300))], Some(80));
        assert!(text.lines().all(|line| line.len() <= 80) && text.lines().count() == 4, "{text}");
    }
}
