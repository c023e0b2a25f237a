//! Colours and lines.

use super::text::cut_to;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

/// How something looks. Without colours everything is told by words all the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) colour: bool,
}

impl Paint {
    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn bad(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(super) fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    pub(super) fn key(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn faint(self) -> Style {
        self.coloured(Color::DarkGray).add_modifier(Modifier::DIM)
    }
}

/// Pieces of a line, one after the other.
pub(super) type Pieces = Vec<(String, Style)>;

/// Writes a line into the row, as far as there is room; what is cut ends in `…`.
pub(super) fn line(buffer: &mut Buffer, row: Rect, pieces: &[(String, Style)]) {
    if row.is_empty() {
        return;
    }
    let (mut x, end) = (row.x, row.right());
    for (text, style) in pieces {
        let left = end.saturating_sub(x);
        if left == 0 {
            return;
        }
        let text = cut_to(text, left.into());
        x = buffer.set_stringn(x, row.y, text, left.into(), *style).0;
    }
}

/// The row so far below the top of an area; empty if it is not in it.
pub(super) fn row(area: Rect, below: usize) -> Rect {
    match u16::try_from(below) {
        Ok(below) if below < area.height => Rect::new(area.x, area.y + below, area.width, 1),
        _ => Rect::new(area.x, area.y, 0, 0),
    }
}

/// An area without its first and last rows.
pub(super) fn without(area: Rect, first: u16, last: u16) -> Rect {
    let first = first.min(area.height);
    let height = area.height.saturating_sub(first).saturating_sub(last);
    Rect::new(area.x, area.y + first, area.width, height)
}
