//! Tables whose columns give way on a narrow terminal.

use super::{
    super::model::Choice,
    paint::{Paint, line, row, without},
    text::{cut_to, wide},
};
use ratatui::{buffer::Buffer, layout::Rect, style::Style};

/// A column. The one of the highest rank gives way first; that of rank 0 never does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) rank: u8,
    /// Numbers stand below each other.
    pub(super) right: bool,
    /// It may be made as narrow as that.
    pub(super) least: usize,
    /// It is never wider.
    pub(super) most: usize,
    /// Where there is no room for all of it, the end is shown.
    pub(super) end: bool,
}

impl Column {
    pub(super) const fn number(name: &'static str, rank: u8) -> Self {
        Self { name, rank, right: true, least: usize::MAX, most: usize::MAX, end: false }
    }

    pub(super) const fn text(name: &'static str, rank: u8, least: usize, most: usize) -> Self {
        Self { name, rank, right: false, least, most, end: false }
    }

    pub(super) const fn showing_the_end(mut self) -> Self {
        self.end = true;
        self
    }
}

pub(super) type Cell = (String, Style);

pub(super) struct Table<const N: usize> {
    pub(super) columns: [Column; N],
    pub(super) rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    /// Draws names and rows, the chosen one among them; answers how many rows there is room for.
    pub(super) fn draw(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        paint: Paint,
        choice: &mut Choice,
    ) -> usize {
        let widths = self.widths(area.width.into());
        let names = self.columns.map(|column| (column.name.to_owned(), paint.strong()));
        self.draw_row(buffer, row(area, 0), &widths, &names);
        let body = without(area, 1, 0);
        let room = usize::from(body.height);
        let first = choice.first_shown(room.max(1));
        for (below, cells) in self.rows.iter().skip(first).take(room).enumerate() {
            let place = row(body, below);
            self.draw_row(buffer, place, &widths, cells);
            if first + below == choice.index {
                buffer.set_style(place, paint.chosen());
            }
        }
        room
    }

    fn draw_row(&self, buffer: &mut Buffer, place: Rect, widths: &[usize; N], cells: &[Cell; N]) {
        let mut pieces = Vec::new();
        for ((column, width), (text, style)) in self.columns.iter().zip(widths).zip(cells) {
            if *width == 0 {
                continue;
            }
            let text = if column.end { end_of(text, *width) } else { cut_to(text, *width) };
            let gap = " ".repeat(width - wide(&text));
            let text = if column.right { gap + &text } else { text + &gap };
            pieces.push((text, *style));
            pieces.push((" ".to_owned(), Style::new()));
        }
        line(buffer, place, &pieces);
    }

    /// 0: there is no room for the column, or nothing in it.
    fn widths(&self, room: usize) -> [usize; N] {
        let whole: [usize; N] = std::array::from_fn(|at| self.whole_width(at));
        let mut widths: [usize; N] =
            std::array::from_fn(|at| whole[at].min(self.columns[at].least));
        while taken(&widths) > room {
            let shown = (0..N).filter(|at| widths[*at] > 0 && self.columns[*at].rank > 0);
            match shown.max_by_key(|at| self.columns[*at].rank) {
                Some(last) => widths[last] = 0,
                None => break,
            }
        }
        for at in 0..N {
            if widths[at] > 0 {
                let spare = room.saturating_sub(taken(&widths));
                widths[at] = whole[at].min(widths[at] + spare);
            }
        }
        widths
    }

    /// A column without a name and without a text is none.
    fn whole_width(&self, at: usize) -> usize {
        let texts = self.rows.iter().map(|cells| wide(&cells[at].0));
        let name = wide(self.columns[at].name);
        texts.chain([name]).max().unwrap_or(0).min(self.columns[at].most)
    }
}

/// Of a text without wide characters.
fn end_of(text: &str, width: usize) -> String {
    text.chars().skip(text.chars().count().saturating_sub(width)).collect()
}

/// With a space between them.
fn taken(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.map(|width| width + 1).sum::<usize>().saturating_sub(1)
}
