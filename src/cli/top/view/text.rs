//! Numbers, times and texts, short and harmless.

use crate::{out::visible, units};
use sprag::Timestamp;
use std::time::Duration;

/// Text of strangers made harmless: neither control characters nor what turns the direction of
/// writing or hides reach the terminal.
pub(super) fn safe(text: &str) -> String {
    let shown = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
    visible(text).chars().map(shown).collect()
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// At most six characters, as far as one can count.
pub(super) fn count(n: u64) -> String {
    match n {
        0..100_000 => n.to_string(),
        100_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..100_000_000 => tenths(n, 1_000_000, "M"),
        100_000_000..1_000_000_000 => format!("{}M", n / 1_000_000),
        1_000_000_000..100_000_000_000 => tenths(n, 1_000_000_000, "G"),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

fn tenths(n: u64, unit: u64, name: &str) -> String {
    format!("{}.{}{name}", n / unit, n % unit * 10 / unit)
}

/// Per second.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 10.0 => format!("{rate:.1}"),
        // Rates are not negative, and a cast of floats saturates.
        rate => count(rate.round() as u64),
    }
}

/// In the two largest units.
pub(super) fn span(of: Duration) -> String {
    let seconds = of.as_secs();
    match seconds {
        0 => format!("{}ms", of.subsec_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// How long ago, or in how long.
pub(super) fn from(now: Timestamp, at: Timestamp) -> String {
    match now.cmp(&at) {
        std::cmp::Ordering::Less => format!("in {}", span(at.since(now))),
        std::cmp::Ordering::Equal => "now".to_owned(),
        std::cmp::Ordering::Greater => format!("{} ago", span(now.since(at))),
    }
}

/// The time of day (UTC).
pub(super) fn clock(at: Timestamp) -> String {
    units::shown(at).get(11..19).map_or_else(String::new, |time| format!("{time}Z"))
}

/// The last numbers as bars, the newest on the right. The lowest is zero, the highest the largest
/// number that is shown.
pub(super) fn spark(past: impl DoubleEndedIterator<Item = f64>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut shown: Vec<f64> = past.rev().take(width).collect();
    shown.reverse();
    let most = shown.iter().copied().fold(0.0, f64::max);
    let bar = |n: f64| match (n / most * 7.0).ceil() {
        // Of NaN, too: all are zero.
        height if height >= 1.0 => BARS.get(height as usize).copied().unwrap_or('█'),
        _ => '▁',
    };
    shown.into_iter().map(bar).collect()
}

/// The beginning of a text, so wide.
pub(super) fn cut_to(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let (mut kept, mut taken) = (String::new(), 0);
    for c in text.chars() {
        taken += wide(c.encode_utf8(&mut [0; 4]));
        if taken >= width {
            break;
        }
        kept.push(c);
    }
    kept + if width > 0 { "…" } else { "" }
}

/// Columns of a terminal.
pub(super) fn wide(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => ratatui::text::Span::raw(text).width(),
    }
}

/// Lines of a width, split behind a space if there is one not far off. No character is lost.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut taken) = (Vec::new(), String::new(), 0);
    for c in text.chars() {
        let more = wide(c.encode_utf8(&mut [0; 4]));
        if taken + more > width.max(1) && !line.is_empty() {
            let space = line.rfind(' ').map(|at| at + 1).filter(|at| *at > line.len() / 2);
            let rest = line.split_off(space.unwrap_or(line.len()));
            lines.push(std::mem::replace(&mut line, rest));
            taken = wide(&line);
        }
        line.push(c);
        taken += more;
    }
    lines.push(line);
    lines
}
