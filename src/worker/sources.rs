//! The queues that a worker serves, and how its slots are shared out among them.

use super::Shared;
use crate::model::{QueueName, StoreError};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Queues that appear later are looked for so often.
const DISCOVERY: Duration = Duration::from_secs(5);

/// So many queues share a round's slots one by one.
const FEW: usize = 16;

/// Queues with their weights.
pub(super) type Queues = Arc<[(QueueName, u32)]>;

/// What the builder was told to serve: queues by name, or by the beginning of their names.
#[derive(Debug, Clone)]
pub(super) enum Selector {
    Name(QueueName),
    Prefix(String),
}

impl Selector {
    /// A `*` at the end stands for any end; queue names have none.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let Some(prefix) = text.strip_suffix('*') else {
            return Ok(Self::Name(QueueName::new(text)?));
        };
        if !prefix.is_empty() {
            QueueName::new(prefix)?;
        }
        Ok(Self::Prefix(prefix.to_owned()))
    }
}

/// All that it was told to serve, in order.
#[derive(Debug, Clone)]
pub(super) struct Selection(pub(super) Vec<(Selector, u32)>);

impl Selection {
    /// Whether queues may appear that it has to serve.
    pub(super) fn is_open(&self) -> bool {
        self.0.iter().any(|(selector, _)| matches!(selector, Selector::Prefix(_)))
    }

    /// The queues that are meant, each once, given those that exist.
    pub(super) fn resolve(&self, existing: &[QueueName]) -> Vec<(QueueName, u32)> {
        let mut queues: Vec<(QueueName, u32)> = Vec::new();
        let mut add = |queue: &QueueName, weight| {
            if !queues.iter().any(|(known, _)| known == queue) {
                queues.push((queue.clone(), weight));
            }
        };
        // Who is named has the weight given there, also if a pattern before it fits.
        for (selector, weight) in &self.0 {
            match selector {
                Selector::Name(queue) => add(queue, *weight),
                Selector::Prefix(prefix) => {
                    let named = |queue: &&QueueName| {
                        !self.0.iter().any(|(s, _)| matches!(s, Selector::Name(n) if n == *queue))
                    };
                    let fits = existing.iter().filter(|queue| queue.as_str().starts_with(prefix));
                    fits.filter(named).for_each(|queue| add(queue, *weight));
                }
            }
        }
        queues
    }
}

/// Picks up queues that appear later, for as long as it is let.
pub(super) async fn discover(shared: Arc<Shared>) {
    if !shared.selection.is_open() {
        return;
    }
    let mut ticks = tokio::time::interval(DISCOVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = look_up(&shared).await {
            tracing::warn!(%error, "queues not looked up; trying again");
        }
    }
}

/// Serves what there is now.
pub(super) async fn look_up(shared: &Shared) -> Result<(), StoreError> {
    let found = shared.selection.resolve(&shared.store().queues().await?);
    let changed = shared.queues.send_if_modified(|queues| {
        let changed = **queues != *found;
        if changed {
            *queues = found.into();
        }
        changed
    });
    if changed {
        tracing::info!(queues = ?shared.queues.borrow(), "queues to serve");
        shared.look.notify_one();
    }
    Ok(())
}

/// How slots go to queues that all have jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// In proportion to their weights.
    Weighted,
    /// All to the first, what it leaves to the next.
    Strict,
}

/// A queue and its share of the slots.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) queue: QueueName,
    weight: u32,
    /// Slots that past rounds owe it, since slots are whole.
    credit: f64,
}

/// The queues as the fetcher goes through them.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) all: Vec<Source>,
    order: Order,
    /// Whose token is taken first at the next wait: each has its turn.
    turn: usize,
}

impl Sources {
    pub(super) fn new(order: Order) -> Self {
        Self { all: Vec::new(), order, turn: 0 }
    }

    /// Serves these from now on; what is owed to those that stay is kept.
    pub(super) fn replace(&mut self, queues: &[(QueueName, u32)]) {
        let owed: HashMap<_, _> = self.all.drain(..).map(|s| (s.queue, s.credit)).collect();
        let source = |(queue, weight): &(QueueName, u32)| Source {
            queue: queue.clone(),
            weight: *weight,
            credit: owed.get(queue).copied().unwrap_or_default(),
        };
        self.all = queues.iter().map(source).collect();
    }

    /// A token of this queue was taken: the others come before it now.
    pub(super) fn woken(&mut self, queue: &QueueName) {
        let place = self.all.iter().position(|source| source.queue == *queue);
        self.turn = place.map_or(0, |place| place + 1);
    }

    /// All, first the one whose turn it is.
    pub(super) fn by_turns(&self) -> Vec<QueueName> {
        let (before, after) = self.all.split_at(self.turn.min(self.all.len()));
        after.iter().chain(before).map(|source| source.queue.clone()).collect()
    }

    /// How many of the free slots each open queue is asked to fill.
    pub(super) fn share_out(&mut self, open: &[usize], free: usize) -> Vec<(usize, usize)> {
        match self.order {
            Order::Strict => open.first().map(|first| (*first, free)).into_iter().collect(),
            Order::Weighted => self.by_weight(open, free),
        }
    }

    /// In proportion to the weights over time: largest remainder, with what was rounded off carried
    /// to the next round.
    fn by_weight(&mut self, open: &[usize], free: usize) -> Vec<(usize, usize)> {
        if let [only] = open {
            return vec![(*only, free)];
        }
        let sources = &mut self.all;
        let total: f64 = open.iter().map(|i| f64::from(sources[*i].weight)).sum();
        for i in open {
            let due = free as f64 * f64::from(sources[*i].weight) / total;
            sources[*i].credit =
                (sources[*i].credit + due).clamp(-(free as f64), 2.0 * free as f64);
        }
        let mut shares: Vec<(usize, usize)> = open.iter().map(|i| (*i, 0)).collect();
        // Of very many queues not each is asked for one job at a time: they have turns.
        let quantum = if open.len() > FEW { free.div_ceil(FEW) } else { 1 };
        let mut left = free;
        while left > 0 {
            let richest = shares.iter_mut().max_by(|a, b| {
                sources[a.0].credit.total_cmp(&sources[b.0].credit).then(b.0.cmp(&a.0))
            });
            let Some((i, share)) = richest else { break };
            let more = quantum.min(left);
            *share += more;
            sources[*i].credit -= more as f64;
            left -= more;
        }
        shares.retain(|(_, share)| *share > 0);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: impl AsRef<str>) -> QueueName {
        QueueName::new(name).expect("name")
    }

    fn sources(order: Order, weights: &[u32]) -> Sources {
        let mut sources = Sources::new(order);
        let queues = weights.iter().enumerate().map(|(i, w)| (queue(format!("q{i}")), *w));
        sources.replace(&queues.collect::<Vec<_>>());
        sources
    }

    #[test]
    fn slots_are_shared_by_weight_also_one_at_a_time() {
        let mut queues = sources(Order::Weighted, &[3, 1]);
        assert_eq!(queues.share_out(&[0, 1], 8), [(0, 6), (1, 2)]);
        let mut counts = [0, 0];
        for _ in 0..40 {
            for (i, share) in queues.share_out(&[0, 1], 1) {
                counts[i] += share;
            }
        }
        assert_eq!(counts, [30, 10]);
    }

    #[test]
    fn what_an_empty_queue_leaves_goes_to_the_open_ones() {
        assert_eq!(sources(Order::Weighted, &[1, 9]).share_out(&[0], 5), [(0, 5)]);
    }

    #[test]
    fn of_many_queues_some_are_asked_for_several_and_each_has_its_share_over_time() {
        let weights: Vec<_> = (0..200).map(|i| 1 + i % 2).collect();
        let mut queues = sources(Order::Weighted, &weights);
        let (open, mut counts): (Vec<_>, _) = ((0..200).collect(), vec![0; 200]);
        for _ in 0..3_000 {
            let shares = queues.share_out(&open, 100);
            assert!(shares.len() <= FEW);
            assert_eq!(shares.iter().map(|(_, share)| share).sum::<usize>(), 100);
            shares.into_iter().for_each(|(i, share)| counts[i] += share);
        }
        for (i, count) in counts.into_iter().enumerate() {
            let due = 1_000 * weights[i] as usize;
            assert!(count.abs_diff(due) < 100, "{i}: {count} of {due}");
        }
    }

    #[test]
    fn each_queue_has_its_turn_at_the_wake_tokens() {
        let mut queues = sources(Order::Weighted, &[1, 1, 1]);
        let turns = |queues: &Sources| {
            queues.by_turns().iter().map(|q| q.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(turns(&queues), ["q0", "q1", "q2"]);
        queues.woken(&queue("q1"));
        assert_eq!(turns(&queues), ["q2", "q0", "q1"]);
        queues.woken(&queue("q2"));
        assert_eq!(turns(&queues), ["q0", "q1", "q2"]);
        queues.woken(&queue("gone"));
        assert_eq!(turns(&queues), ["q0", "q1", "q2"]);
    }

    #[test]
    fn in_strict_order_all_slots_are_the_first_ones() {
        let mut queues = sources(Order::Strict, &[1, 9]);
        assert_eq!(queues.share_out(&[0, 1], 5), [(0, 5)]);
        assert_eq!(queues.share_out(&[1], 5), [(1, 5)]);
    }

    #[test]
    fn a_pattern_stands_for_the_queues_there_are() {
        let selectors = [("urgent", 5), ("mail-*", 2), ("mail-bulk", 1)];
        let parse = |(text, weight)| (Selector::parse(text).expect("valid"), weight);
        let selection = Selection(selectors.into_iter().map(parse).collect());
        assert!(selection.is_open());
        let existing = ["mail-bulk", "mail-eu", "other"].map(queue);
        let expected = [("urgent", 5), ("mail-eu", 2), ("mail-bulk", 1)];
        let expected = expected.map(|(name, weight)| (queue(name), weight));
        assert_eq!(selection.resolve(&existing), expected);
        for bad in ["a*b", "**", "a b*"] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }
}
