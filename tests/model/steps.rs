//! What may be done: one step is one call, or something that happens to the stores.

use crate::jobs::{FEW, FEW_CONTENTS, IDS, Job, content, few_jobs, jobs, times};
use proptest::{collection::vec, option, prelude::*, sample::select};
use sprag::{State, store::Operation};

/// A step, and whether an answer to it is lost on the way to the client, and which: a script may be
/// called again with more keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) call: Call,
    pub(crate) lost: Option<(Lost, u64)>,
}

/// How the connection ends before the answer comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Lost {
    Closed,
    Reset,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Enqueue(Vec<Job>),
    EnqueueAtomic(Vec<Job>),
    Claim { worker: u8, count: usize, lease: u64 },
    Extend(Vec<Pick>, u64),
    Complete(Vec<Pick>, Option<&'static str>),
    Retry(Vec<Pick>, u64),
    Archive(Vec<Pick>, Option<&'static str>),
    Snooze(Vec<Pick>, u64),
    Requeue(Vec<Pick>),
    Progress(Pick),
    Operate(Operation, Vec<u8>),
    Set(Vec<Set>),
    Quarantine((u8, u8), Option<&'static str>),
    Release((u8, u8)),
    Sweep { now: bool, seed: u64 },
    List { state: State, kind: Option<u8>, limit: usize },
    Days(u32),
    DeleteQueue { force: bool },
    Advance(u64),
    FlushScripts,
    NewStore,
}

/// Which job a holder speaks of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pick {
    /// One of those that are held.
    Held(u8),
    /// One that was handed over at some time: held or not.
    Once(u8),
    /// Any id with a fence that nobody has.
    Never(u8),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Set {
    Limit(Option<u64>),
    Paused(bool),
    Retention(State, Option<u64>),
    MaxArchived(Option<u64>),
    CrashLimit(Option<u32>),
    CrashWindow(Option<u64>),
}

fn pick() -> impl Strategy<Value = Pick> + Clone {
    prop_oneof![
        8 => (0..IDS).prop_map(Pick::Held),
        2 => any::<u8>().prop_map(Pick::Once),
        1 => (0..IDS).prop_map(Pick::Never),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    let finished = vec![State::Completed, State::Archived, State::Cancelled, State::Quarantined];
    prop_oneof![
        2 => option::of(0..6u64).prop_map(Set::Limit),
        1 => Just(Set::Paused(true)),
        3 => Just(Set::Paused(false)),
        2 => (select(finished), option::of(times())).prop_map(|(state, kept)| Set::Retention(state, kept)),
        2 => option::of(0..3u64).prop_map(Set::MaxArchived),
        2 => option::of(1..4u32).prop_map(Set::CrashLimit),
        1 => option::of(times()).prop_map(Set::CrashWindow),
    ]
}

fn holders() -> impl Strategy<Value = Call> {
    let picks = || vec(pick(), 1..4);
    let text = |texts: [&'static str; 2]| option::of(select(texts.to_vec()));
    prop_oneof![
        2 => (picks(), times().prop_filter("a lease", is_lease)).prop_map(|(held, lease)| Call::Extend(held, lease)),
        4 => (picks(), text(["7", "{\"a\":\"ü\\n\"}"])).prop_map(|(held, result)| Call::Complete(held, result)),
        4 => (picks(), times()).prop_map(|(held, delay)| Call::Retry(held, delay)),
        2 => (picks(), text(["no\n", "é\"\\"])).prop_map(|(held, error)| Call::Archive(held, error)),
        2 => (picks(), times()).prop_map(|(held, delay)| Call::Snooze(held, delay)),
        2 => picks().prop_map(Call::Requeue),
        2 => pick().prop_map(Call::Progress),
    ]
}

/// 100 ms to a day.
fn is_lease(millis: &u64) -> bool {
    (100..=86_400_000).contains(millis)
}

fn operators() -> impl Strategy<Value = Call> {
    let operation = select(Operation::ALL.to_vec());
    let some_or_all = prop_oneof![2 => vec(0..IDS, 1..4), 1 => Just((0..IDS).collect::<Vec<u8>>())];
    let list = (select(State::ALL.to_vec()), option::of(0..2u8), 1..4usize);
    prop_oneof![
        12 => (operation, some_or_all).prop_map(|(operation, ids)| Call::Operate(operation, ids)),
        4 => vec(set(), 1..3).prop_map(Call::Set),
        2 => (content(), option::of(Just("bad =\n"))).prop_map(|(fp, reason)| Call::Quarantine(fp, reason)),
        3 => content().prop_map(Call::Release),
        2 => list.prop_map(|(state, kind, limit)| Call::List { state, kind, limit }),
        1 => (1..91u32).prop_map(Call::Days),
        1 => prop_oneof![4 => Just(false), 1 => Just(true)].prop_map(|force| Call::DeleteQueue { force }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let claim = (0..3u8, 1..4usize, times().prop_filter("a lease", is_lease));
    let sweep = (prop_oneof![3 => Just(true), 1 => Just(false)], any::<u64>());
    prop_oneof![
        9 => vec(jobs(), 1..4).prop_map(Call::Enqueue),
        3 => vec(jobs(), 1..4).prop_map(Call::EnqueueAtomic),
        9 => claim.prop_map(|(worker, count, lease)| Call::Claim { worker, count, lease }),
        12 => holders(),
        10 => operators(),
        8 => times().prop_map(Call::Advance),
        8 => sweep.prop_map(|(now, seed)| Call::Sweep { now, seed }),
        1 => prop_oneof![3 => Just(Call::NewStore), 1 => Just(Call::FlushScripts)],
    ]
}

fn steps(call: impl Strategy<Value = Call>, lost: f64) -> impl Strategy<Value = Step> {
    let how = select(vec![Lost::Closed, Lost::Reset]);
    let lost = option::weighted(lost, (how, 0..2u64));
    (call, lost).prop_map(|(call, lost)| Step { call, lost })
}

pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(steps(call(), 0.04), 1..60)
}

/// All that moves a job from place to place, with three ids and one unique key.
fn move_about() -> impl Strategy<Value = Call> {
    let ids = || prop_oneof![3 => (0..FEW).prop_map(|id| vec![id]), 1 => vec(0..FEW, 2..4)];
    let operate = |operation| ids().prop_map(move |ids| Call::Operate(operation, ids));
    let held = || vec((0..FEW).prop_map(Pick::Held), 1..3);
    let claim = (1..4usize, select(vec![500, 30_000]));
    let (moment, content) = (select(vec![1, 500, 1_000, 60_000]), select(FEW_CONTENTS.to_vec()));
    prop_oneof![
        14 => vec(few_jobs(), 1..3).prop_map(Call::Enqueue),
        1 => vec(few_jobs(), 1..3).prop_map(Call::EnqueueAtomic),
        8 => operate(Operation::Run),
        4 => operate(Operation::Cancel),
        4 => operate(Operation::Rerun),
        4 => operate(Operation::Delete),
        6 => claim.prop_map(|(count, lease)| Call::Claim { worker: 0, count, lease }),
        3 => held().prop_map(Call::Requeue),
        2 => held().prop_map(|held| Call::Retry(held, 1)),
        1 => held().prop_map(|held| Call::Snooze(held, 1)),
        2 => held().prop_map(|held| Call::Complete(held, None)),
        2 => content.clone().prop_map(|content| Call::Quarantine(content, None)),
        4 => content.prop_map(Call::Release),
        3 => moment.prop_map(Call::Advance),
        3 => any::<u64>().prop_map(|seed| Call::Sweep { now: true, seed }),
        1 => Just(Call::List { state: State::Pending, kind: None, limit: 1 }),
    ]
}

pub(crate) fn moves() -> impl Strategy<Value = Vec<Step>> {
    vec(steps(move_about(), 0.01), 1..50)
}
