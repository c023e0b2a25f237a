//! What a walk along all lanes tells: which jobs are pending, and whether `ghosts` fits the entries.
//! No I/O.
//!
//! A job that stays pending is met, since a walk goes from the end where jobs come to the end where
//! they leave. One that moves meanwhile may be met twice or not at all: what is missing is only
//! suspected, and looked for again.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
};

/// One lane's entry, as `lua/lib/ghosts.lua` reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneEntry<'a> {
    pub(super) id: &'a [u8],
    pub(super) token: Option<&'a [u8]>,
}

impl<'a> LaneEntry<'a> {
    pub(super) fn read(entry: &'a [u8]) -> Self {
        let Some(rest) = entry.strip_prefix(b" ") else { return Self { id: entry, token: None } };
        let space = rest.iter().position(|b| *b == b' ');
        match space.map(|at| (&rest[..at], &rest[at + 1..])) {
            Some((token, id)) if !token.is_empty() && token.iter().all(u8::is_ascii_digit) => {
                Self { id, token: Some(token) }
            }
            _ => Self { id: rest, token: None },
        }
    }
}

/// How many entries are stale and which token is live; none if the text says nothing.
pub(super) fn stale_and_token(text: &[u8]) -> Option<(u64, &[u8])> {
    let space = text.iter().position(|b| *b == b' ')?;
    let (stale, token) = (&text[..space], &text[space + 1..]);
    let digits = !stale.is_empty() && stale.len() < 16 && stale.iter().all(u8::is_ascii_digit);
    let stale = std::str::from_utf8(stale).ok().filter(|_| digits)?.parse().ok()?;
    (stale > 0 && !token.is_empty() && !token.contains(&b' ')).then_some((stale, token))
}

/// Two live entries of one id: priority and entry of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Twice {
    pub(super) id: Vec<u8>,
    pub(super) one: (u8, Vec<u8>),
    pub(super) other: (u8, Vec<u8>),
}

/// What `ghosts` says of a lane and id, and the entries that were met.
#[derive(Debug, Default)]
struct Sight {
    text: Vec<u8>,
    moved: bool,
    entries: BTreeMap<Vec<u8>, usize>,
}

/// A text in `ghosts` that contradicts the entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Contradiction {
    pub(super) name: Vec<u8>,
    pub(super) text: Vec<u8>,
    pub(super) right: Vec<u8>,
}

/// Lane and token of a live entry.
type Place = (u8, Option<Box<[u8]>>);

/// A walk along the lanes.
#[derive(Debug, Default)]
pub(super) struct Walk {
    live: HashMap<u64, Place>,
    sights: HashMap<Vec<u8>, Sight>,
    lengths: [u64; 10],
    last: Option<Vec<u8>>,
}

fn hash_of(id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Walk {
    /// Takes a slice of a lane: each entry, and what `ghosts` says of it. Answers the ids of which
    /// a live entry was met before.
    pub(super) fn slice(&mut self, lane: u8, told: &[Vec<u8>], first: bool) -> Vec<Twice> {
        let mut twice = Vec::new();
        // Jobs that came meanwhile shifted the lane: what stands up to the last one was met.
        let entries = || told.chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
        let last = self.last.take().filter(|_| !first);
        let met = last.and_then(|last| entries().position(|(entry, _)| *entry == last));
        for (entry, text) in entries().skip(met.map_or(0, |at| at + 1)) {
            let LaneEntry { id, token } = LaneEntry::read(entry);
            self.lengths[usize::from(lane)] += 1;
            let stale = stale_and_token(text);
            if !text.is_empty() {
                self.sight(lane, id, text, entry);
            }
            if stale.is_some_and(|(_, live)| Some(live) != token) {
                continue;
            }
            match self.live.entry(hash_of(id)) {
                Entry::Vacant(place) => {
                    place.insert((lane, token.map(Into::into)));
                }
                Entry::Occupied(place) => {
                    let (other, token) = place.get();
                    let before = match token {
                        Some(token) => [b" ", &**token, b" ", id].concat(),
                        None => id.to_vec(),
                    };
                    twice.push(Twice {
                        id: id.to_vec(),
                        one: (*other, before),
                        other: (lane, entry.clone()),
                    });
                }
            }
        }
        self.last = entries().next_back().map(|(entry, _)| entry.clone());
        twice
    }

    fn sight(&mut self, lane: u8, id: &[u8], text: &[u8], entry: &[u8]) {
        let name = [format!("{lane}:").as_bytes(), id].concat();
        let sight = self.sights.entry(name).or_default();
        sight.moved |= !sight.entries.is_empty() && sight.text != text;
        sight.text = text.to_vec();
        *sight.entries.entry(entry.to_vec()).or_default() += 1;
    }

    /// Whether a live entry of the job was met.
    pub(super) fn is_pending(&self, id: &[u8]) -> bool {
        self.live.contains_key(&hash_of(id))
    }

    /// What of `ghosts`, read when the walk was over, contradicts what was met.
    pub(super) fn contradictions(&self, ghosts: &[(Vec<u8>, Vec<u8>)]) -> HashSet<Contradiction> {
        let none = Sight::default();
        let mut found = HashSet::new();
        for (name, text) in ghosts {
            let sight = self.sights.get(name).unwrap_or(&none);
            // Whenever an entry comes or goes, the text changes.
            if sight.moved || !sight.entries.is_empty() && sight.text != *text {
                continue;
            }
            let right = right_text(text, &sight.entries);
            if right != *text {
                found.insert(Contradiction { name: name.clone(), text: text.clone(), right });
            }
        }
        found
    }

    /// Lanes that hold mostly stale entries: lane, stale ones, all.
    pub(super) fn mostly_stale(&self, ghosts: &[(Vec<u8>, Vec<u8>)]) -> Vec<(usize, u64, u64)> {
        let mut stale = [0; 10];
        for (name, text) in ghosts {
            let lane = name.first().filter(|_| name.get(1) == Some(&b':'));
            let lane = lane.and_then(|digit| char::from(*digit).to_digit(10));
            if let (Some(lane), Some((count, _))) = (lane, stale_and_token(text)) {
                stale[lane as usize] += count;
            }
        }
        let lanes = stale.into_iter().zip(self.lengths).enumerate();
        let mostly = |(_, stale, all): &(usize, u64, u64)| *all >= 1_000 && stale * 2 > *all;
        lanes.map(|(lane, (stale, all))| (lane, stale, all)).filter(mostly).collect()
    }
}

/// What `ghosts` should say of these entries; empty: nothing. Which one is live stays as it was.
fn right_text(text: &[u8], entries: &BTreeMap<Vec<u8>, usize>) -> Vec<u8> {
    let tokens = || entries.keys().filter_map(|entry| LaneEntry::read(entry).token);
    let token = match stale_and_token(text) {
        Some((_, token)) => tokens().find(|known| *known == token),
        // It says nothing, and every entry counts as live: the last that came shall be it.
        None => tokens().max_by_key(|token| (token.len(), token.to_vec())),
    };
    let live = usize::from(token.is_some());
    match entries.values().sum::<usize>() - live {
        0 => Vec::new(),
        // One entry and a text that nobody can read: it is live.
        1 if token.is_none() && stale_and_token(text).is_none() => Vec::new(),
        stale => [format!("{stale} ").as_bytes(), token.unwrap_or(b"-")].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pairs: &[(&str, &str)]) -> Vec<Vec<u8>> {
        pairs
            .iter()
            .flat_map(|(entry, text)| [entry.as_bytes().into(), text.as_bytes().into()])
            .collect()
    }

    fn ghosts(pairs: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(name, text)| (name.as_bytes().into(), text.as_bytes().into())).collect()
    }

    fn contradictions(lane: &[(&str, &str)], in_ghosts: &[(&str, &str)]) -> Vec<String> {
        let mut walk = Walk::default();
        walk.slice(4, &told(lane), true);
        let found = walk.contradictions(&ghosts(in_ghosts));
        found.into_iter().map(|one| String::from_utf8(one.right).expect("UTF-8")).collect()
    }

    #[test]
    fn what_fits_is_no_contradiction() {
        let one_stale = [("x", "1 -")];
        assert!(contradictions(&one_stale, &[("4:x", "1 -")]).is_empty());
        let stale_and_live = [("x", "1 5"), (" 5 x", "1 5"), ("y", "")];
        assert!(contradictions(&stale_and_live, &[("4:x", "1 5")]).is_empty());
        // It moved while the walk went on.
        assert!(contradictions(&one_stale, &[("4:x", "2 -")]).is_empty());
        assert!(contradictions(&[("x", "1 -"), (" 5 x", "1 5")], &[("4:x", "1 5")]).is_empty());
    }

    #[test]
    fn a_contradiction_knows_what_is_right() {
        assert_eq!(contradictions(&[], &[("4:x", "1 -")]), [""]);
        assert_eq!(contradictions(&[("x", "3 -")], &[("4:x", "3 -")]), ["1 -"]);
        assert_eq!(contradictions(&[("x", "1 -"), ("x", "1 -")], &[("4:x", "1 -")]), ["2 -"]);
        assert_eq!(contradictions(&[("x", "1 5")], &[("4:x", "1 5")]), ["1 -"]);
        assert_eq!(contradictions(&[("x", "2 5"), (" 5 x", "2 5")], &[("4:x", "2 5")]), ["1 5"]);
        assert_eq!(contradictions(&[("x", "broken")], &[("4:x", "broken")]), [""]);
        assert_eq!(contradictions(&[("x", "?"), (" 7 x", "?")], &[("4:x", "?")]), ["1 7"]);
    }

    #[test]
    fn a_lane_that_is_shifted_gives_no_job_twice() {
        let mut walk = Walk::default();
        assert!(walk.slice(4, &told(&[("a", ""), ("b", ""), ("c", "")]), true).is_empty());
        // One came at the left end.
        assert!(walk.slice(4, &told(&[("c", ""), ("d", ""), ("e", "")]), false).is_empty());
        assert!(walk.is_pending(b"e") && !walk.is_pending(b"f"));
        let twice = walk.slice(3, &told(&[("b", "1 -"), (" 9 d", "")]), true);
        let expected =
            Twice { id: b"d".to_vec(), one: (4, b"d".to_vec()), other: (3, b" 9 d".to_vec()) };
        assert_eq!(twice, [expected]);
    }

    #[test]
    fn a_lane_that_is_mostly_stale_is_told_from_one_that_is_not() {
        let mut walk = Walk::default();
        let ids: Vec<String> = (0..1_000).map(|n| format!("job-{n}")).collect();
        let entries: Vec<_> = ids.iter().map(|id| (&**id, "")).collect();
        walk.slice(4, &told(&entries), true);
        assert_eq!(walk.mostly_stale(&ghosts(&[("4:x", "501 -")])), [(4, 501, 1_000)]);
        assert!(walk.mostly_stale(&ghosts(&[("4:x", "500 -"), ("3:x", "9 -")])).is_empty());
    }
}
