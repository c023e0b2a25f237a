//! A list with one row chosen: by what it is, not by where it stands, for rows move.

/// The chosen row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    key: Option<String>,
    /// The first row that is shown.
    top: usize,
}

impl Choice {
    /// Finds the chosen row again among these; if it is gone, the one that stands in its place.
    pub(crate) fn settle(&mut self, keys: &[&str]) {
        let same = self.key.as_deref().and_then(|key| keys.iter().position(|one| *one == key));
        self.index = same.unwrap_or(self.index.min(keys.len().saturating_sub(1)));
        self.key = keys.get(self.index).map(|key| (*key).to_owned());
    }

    pub(crate) fn step(&mut self, keys: &[&str], by: isize) {
        let last = keys.len().saturating_sub(1);
        self.index = self.index.saturating_add_signed(by).min(last);
        self.key = keys.get(self.index).map(|key| (*key).to_owned());
    }

    /// The first of so many rows that are shown: the chosen one is among them.
    pub(crate) fn first_shown(&mut self, rows: usize) -> usize {
        let least = (self.index + 1).saturating_sub(rows);
        self.top = self.top.clamp(least, self.index.max(least));
        self.top
    }
}

/// Whether one of the texts has the filter in it, however it is written.
pub(crate) fn matches(filter: &str, texts: &[&str]) -> bool {
    let filter = filter.to_lowercase();
    filter.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&filter))
}
