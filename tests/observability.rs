//! `docs/observability.md` says what is so: every metric and label's value, every field of the span.

use std::{collections::BTreeSet, fs, path::Path};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The texts in backticks that stand on one line.
fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The strings of a source that begin so, without the prefix's own.
fn quoted_with(source: &str, prefix: &str) -> BTreeSet<String> {
    let strings = source.split('"').skip(1).step_by(2);
    strings.filter(|text| text.starts_with(prefix)).map(str::to_owned).collect()
}

/// The first cells of a page's table rows that begin with a backtick.
fn first_cells(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`'))
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let sources = read("src/client/meters.rs") + &read("src/worker/meters.rs");
    let code = sources.split("#[cfg(test)]").next().expect("a part").to_owned();
    let page = read("docs/observability.md");
    let metrics = page.split("## Traces").next().expect("a part");
    let documented = first_cells(metrics).map(|(name, _)| name.to_owned());
    let documented = documented.filter(|name| name.starts_with("sprag_")).collect();
    assert_eq!(quoted_with(&code, "sprag_"), documented);
    // Named elsewhere on the page, they exist as well.
    let named = in_backticks(&page).filter(|name| name.starts_with("sprag_"));
    assert_eq!(named.map(str::to_owned).collect::<BTreeSet<_>>(), documented);
    for (name, rest) in first_cells(metrics).filter(|(name, _)| name.starts_with("sprag_")) {
        let is_described =
            code.split("describe_").skip(1).any(|call| call.split('"').nth(1) == Some(name));
        assert!(is_described, "{name} is described to exporters");
        let suffix = match rest.split('|').nth(1).map(str::trim) {
            Some("counter") => "_total",
            Some("histogram") => "_seconds",
            _ => "",
        };
        assert!(name.ends_with(suffix), "{name} is named after its type");
    }
    let handlers = read("src/worker/handler/mod.rs");
    let code = code + &read("src/worker/sweep.rs") + &read("src/worker/cancel.rs");
    let words = [
        "completed",
        "retried",
        "archived",
        "snoozed",
        "requeued",
        "lost",
        "promoted",
        "reclaimed",
        "expired",
        "quarantined",
        "evicted",
        "enqueued",
        "existing",
        "duplicate",
        "id_conflict",
        "backpressure",
        "invalid",
        "unavailable",
        "backend",
        "timeout",
        "deadline",
        "operator",
        "lease_lost",
        "shutdown",
        "other",
    ];
    for word in words {
        let quoted = format!("\"{word}\"");
        assert!(code.contains(&quoted) || handlers.contains(&quoted), "{word} is a label's value");
        assert!(metrics.contains(&format!("`{word}`")), "{word} is documented");
    }
}

#[test]
fn the_span_of_a_job_has_the_fields_that_are_documented() {
    let source = read("src/worker/execute.rs");
    let span = source.split("info_span!(").nth(1).and_then(|rest| rest.split(");").next());
    let span = span.expect("the span");
    let fields = span.split(',').filter_map(|part| part.trim().split_once(" = "));
    let fields: Vec<_> = fields.map(|(name, _)| name).collect();
    let page = read("docs/observability.md");
    let table = page.split("## The span").nth(1).expect("a part");
    assert_eq!(first_cells(table).map(|(name, _)| name).collect::<Vec<_>>(), fields);
}
