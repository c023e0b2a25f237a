//! What was measured: one table as it comes, and the same as JSON.

use serde::Serialize;
use std::{fmt, io, path::Path};

/// The median of some runs, and between what they lie.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Spread {
    median: f64,
    min: f64,
    max: f64,
    runs: usize,
}

impl Spread {
    fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
        Self { median: median_of(&sorted), min, max, runs: sorted.len() }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number(self.median))?;
        match self.runs {
            1 => Ok(()),
            _ => write!(f, " ({}–{})", number(self.min), number(self.max)),
        }
    }
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    median_of(&samples)
}

/// Of an even number of samples, half-way between the two in the middle.
fn median_of(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len().is_multiple_of(2) {
        true => f64::midpoint(sorted[middle - 1], sorted[middle]),
        false => sorted[middle],
    }
}

/// Three digits that matter, or all before the point.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1_000.0.. => {
            let (digits, mut text) = (format!("{value:.0}"), String::new());
            for (i, digit) in digits.chars().enumerate() {
                if i > 0 && (digits.len() - i).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// One line of the table.
#[derive(Serialize)]
pub(crate) struct Row {
    section: &'static str,
    name: String,
    unit: &'static str,
    sprag: Spread,
    #[serde(skip)]
    samples: Vec<f64>,
    beside: Option<Beside>,
    /// sprag / what stands beside it, run by run.
    ratio: Option<Spread>,
}

/// What a figure is compared with: the floor, or the same thing under other conditions.
#[derive(Serialize)]
struct Beside {
    what: &'static str,
    #[serde(flatten)]
    spread: Spread,
}

impl Row {
    /// A sample per run.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, samples: &[f64]) -> Self {
        Self {
            section: "",
            name: name.into(),
            unit,
            sprag: Spread::of(samples),
            samples: samples.to_vec(),
            beside: None,
            ratio: None,
        }
    }

    /// Of the same runs, in their order.
    pub(crate) fn beside(mut self, what: &'static str, samples: &[f64]) -> Self {
        assert_eq!(samples.len(), self.samples.len(), "{}: as many runs", self.name);
        let ratios: Vec<_> =
            self.samples.iter().zip(samples).map(|(ours, its)| ours / its).collect();
        self.beside = Some(Beside { what, spread: Spread::of(samples) });
        self.ratio = Some(Spread::of(&ratios));
        self
    }

    fn cells(&self) -> [String; 4] {
        let beside =
            self.beside.as_ref().map(|beside| format!("{}: {}", beside.what, beside.spread));
        [
            format!("{}: {}", self.section, self.name),
            format!("{} {}", self.sprag, self.unit),
            beside.unwrap_or_default(),
            self.ratio.map(|ratio| ratio.to_string()).unwrap_or_default(),
        ]
    }
}

/// All rows so far, and the bars that were missed.
#[derive(Serialize)]
pub(crate) struct Report {
    sprag: &'static str,
    server: String,
    cores: usize,
    runs: usize,
    quick: bool,
    rows: Vec<Row>,
    missed: Vec<String>,
    #[serde(skip)]
    section: &'static str,
}

impl Report {
    /// Prints the table's head.
    pub(crate) fn new(server: String, runs: usize, quick: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let sprag = env!("CARGO_PKG_VERSION");
        println!(
            "sprag {sprag} on {server}, {cores} cores; medians (min–max) of {runs} runs, unless a \
             row says otherwise; ratio: sprag over what stands beside it\n"
        );
        line(&["measure", "sprag", "beside", "ratio"].map(str::to_owned));
        println!("|{}|{}|{}|{}|", dashes(0), dashes(1), dashes(2), dashes(3));
        let (rows, missed) = (Vec::new(), Vec::new());
        Self { sprag, server, cores, runs, quick, rows, missed, section: "" }
    }

    pub(crate) fn begin(&mut self, section: &'static str) {
        self.section = section;
    }

    pub(crate) fn row(&mut self, mut row: Row) {
        row.section = self.section;
        line(&row.cells());
        self.rows.push(row);
    }

    /// A bar: the bench goes on, and fails at its end.
    pub(crate) fn require(&mut self, holds: bool, bar: impl Into<String>) {
        if !holds {
            self.missed.push(format!("{}: {}", self.section, bar.into()));
        }
    }

    pub(crate) fn missed(&self) -> &[String] {
        &self.missed
    }

    pub(crate) fn write_json(&self, file: &Path) -> io::Result<()> {
        // `target`, if cargo was told to build elsewhere.
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(file, serde_json::to_vec_pretty(self)?)
    }
}

/// Characters of a column; what is longer moves the rest of its line.
const WIDTHS: [usize; 4] = [74, 36, 38, 18];

fn dashes(column: usize) -> String {
    "-".repeat(WIDTHS[column] + 2)
}

fn line(cells: &[String; 4]) {
    let [a, b, c, d] = WIDTHS;
    println!("| {:a$} | {:b$} | {:c$} | {:d$} |", cells[0], cells[1], cells[2], cells[3]);
}
