//! A script dies half-way: no permission for one of its commands, or a key of the wrong type. Redis
//! undoes nothing; no job is lost all the same.

use crate::{
    case::Case,
    rig::{Dump, HOUR, Rig, assert_same, key, other_queue, queue},
    world::{claim, held, id},
};
use redis::cmd;
use sprag::{
    Fence, RedisStore, Store,
    store::{Complete, Held, Pace, Setting},
};
use std::collections::BTreeSet;

/// What a case does to jobs when nothing befalls it.
struct Calm {
    before: Dump,
    after: Dump,
}

impl Calm {
    async fn of(rig: &Rig, case: Case) -> Self {
        let world = case.prepare(rig, &rig.direct()).await;
        let before = rig.dump().await;
        case.call(&rig.direct(), &world).await;
        Self { before, after: rig.dump().await }
    }

    /// Whether the case deletes the job.
    fn deletes(&self, name: &str) -> bool {
        !self.after.names("jobs").contains(&name)
    }

    /// Whether the job is to be run when the case is over.
    fn leaves_open(&self, name: &str) -> bool {
        is_open(&self.after, name)
    }
}

/// In the hands of a worker, or waiting for one.
fn is_open(dump: &Dump, name: &str) -> bool {
    let finished = ["completed", "archived", "cancelled", "quarantined"];
    let places = dump.places_of(name);
    let open = places.iter().any(|place| !finished.contains(&place.as_str()));
    open || dump.names("holder").contains(&name)
}

/// The commands by which scripts write.
const WRITES: [&str; 9] =
    ["hdel", "hincrby", "hset", "lpush", "ltrim", "rpush", "unlink", "zadd", "zrem"];

/// The write commands that the case sends, by the server's own count.
async fn writes_of(rig: &Rig, case: Case) -> Vec<&'static str> {
    let world = case.prepare(rig, &rig.direct()).await;
    rig.run::<()>(cmd("CONFIG").arg("RESETSTAT")).await;
    case.call(&rig.direct(), &world).await;
    let stats: String = rig.run(cmd("INFO").arg("commandstats")).await;
    let sent = |name: &&str| stats.contains(&format!("cmdstat_{name}:"));
    WRITES.into_iter().filter(sent).collect()
}

async fn permit(rig: &Rig, command: &str, sign: char) {
    let rule = format!("{sign}{command}");
    rig.run::<()>(cmd("ACL").arg("SETUSER").arg("default").arg(rule)).await;
}

/// Calls of each role that change nothing, while all is allowed.
async fn may_all(store: &RedisStore) {
    let nobody = Held { id: id("nobody"), fence: Fence(1) };
    store.watch(&other_queue(), HOUR).await.expect("producer, operator");
    let outcomes = store.extend(&other_queue(), &[nobody], HOUR).await.expect("worker");
    assert!(outcomes[0].is_err());
}

async fn dies_without(case: Case, calm: &Calm, command: &str, rig: &Rig) {
    let what = format!("{case:?} without {command}");
    let world = case.prepare(rig, &rig.direct()).await;
    let store = rig.direct();
    // Asked at the first call, it would say no to the whole call.
    may_all(&store).await;
    permit(rig, command, '-').await;
    let answer = case.call(&store, &world).await;
    permit(rig, command, '+').await;
    assert!(answer.contains("Backend("), "{what}: {answer}");
    nothing_is_lost(&rig.dump().await, calm, &what);

    // A repeat may be refused by now, for what the first call did; what counts is what follows.
    case.call(&store, &world).await;
    nothing_is_lost(&rig.dump().await, calm, &format!("{what}, repeated"));
    all_come_to_an_end(rig, &store, calm, &what).await;
}

/// Every job that was there has its record and a place, unless this call was to delete it.
fn nothing_is_lost(dump: &Dump, calm: &Calm, what: &str) {
    let records: BTreeSet<_> = dump.names("jobs").into_iter().collect();
    for name in calm.before.names("jobs") {
        if records.contains(name) {
            let held = dump.names("holder").contains(&name);
            assert!(held || !dump.places_of(name).is_empty(), "{what}: {name} is nowhere");
        } else {
            assert!(calm.deletes(name), "{what}: the record of {name} is gone");
        }
    }
}

/// Every job that was not ended can be run to its end: workers come back, time goes by.
async fn all_come_to_an_end(rig: &Rig, store: &RedisStore, calm: &Calm, what: &str) {
    let mut ran = BTreeSet::new();
    store.set(&queue(), &[Setting::Paused(false)]).await.expect("resume");
    for _ in 0..6 {
        rig.advance(2 * HOUR).await;
        store.sweep(&queue(), Pace::Now).await.expect("sweep");
        let claimed = claim(store, 1_000).await;
        ran.extend(claimed.iter().map(|job| job.id.to_string()));
        let jobs: Vec<_> =
            claimed.iter().map(|job| Complete { held: held(job), result: None }).collect();
        let outcomes = store.complete(&queue(), &jobs).await.expect("complete");
        assert!(outcomes.iter().all(Result::is_ok), "{what}: {outcomes:?}");
    }
    let dump = rig.dump().await;
    for name in calm.before.names("jobs") {
        let ended_without = ["archived", "quarantined"];
        let ended = dump.places_of(name).iter().any(|place| ended_without.contains(&&**place));
        let to_run = calm.leaves_open(name) && !ended;
        assert!(!to_run || ran.contains(name), "{what}: {name} never ran");
        assert!(!is_open(&dump, name), "{what}: {name} is still open: {:?}", dump.places_of(name));
    }
    let info = store.queue(&queue()).await.expect("queue");
    let counted = (info.unfinished, info.pending, info.scheduled, info.active, info.retry);
    assert_eq!(counted, (0, 0, 0, 0, 0), "{what}");
}

/// The script dies at its `at`-th write; false if it has fewer.
async fn dies_at(case: Case, calm: &Calm, at: usize, rig: &Rig) -> bool {
    let what = format!("{case:?} dies at write {at}");
    let world = case.prepare(rig, &rig.direct()).await;
    let store = rig.direct();
    rig.on::<()>("SET", "dies", &[&at.to_string()]).await;
    let answer = case.call(&store, &world).await;
    rig.on::<()>("DEL", "dies", &[]).await;
    if !answer.contains("Backend(") {
        return false;
    }
    nothing_is_lost(&rig.dump().await, calm, &what);
    case.call(&store, &world).await;
    nothing_is_lost(&rig.dump().await, calm, &format!("{what}, repeated"));
    all_come_to_an_end(rig, &store, calm, &what).await;
    true
}

async fn dies_everywhere(scripts: &[&str]) {
    let rig = Rig::new().await;
    for case in all_but_new_queues().filter(|case| scripts.contains(&case.script())) {
        let (calm, mut at) = (Calm::of(&rig, case).await, 1);
        // In the hundreds of a long slice, one in a few will do.
        while dies_at(case, &calm, at, &rig).await {
            at += 1 + at / 24;
        }
        assert!(at > 1, "{case:?} writes nothing");
    }
}

#[tokio::test]
async fn an_enqueue_or_claim_that_dies_at_any_write_loses_no_job() {
    dies_everywhere(&["enqueue", "claim"]).await;
}

#[tokio::test]
async fn a_settlement_that_dies_at_any_write_loses_no_job() {
    dies_everywhere(&["complete", "retry", "archive", "snooze", "requeue", "extend"]).await;
}

#[tokio::test]
async fn an_operator_s_call_that_dies_at_any_write_loses_no_job() {
    dies_everywhere(&["operate", "set", "quarantine", "release", "watch_ends"]).await;
}

#[tokio::test]
async fn a_sweep_that_dies_at_any_write_loses_no_job() {
    dies_everywhere(&["sweep"]).await;
}

#[tokio::test]
async fn a_script_that_may_not_send_one_of_its_commands_loses_no_job() {
    let rig = Rig::new().await;
    for case in all_but_new_queues() {
        let calm = Calm::of(&rig, case).await;
        for command in writes_of(&rig, case).await {
            dies_without(case, &calm, command, &rig).await;
        }
    }
}

#[tokio::test]
async fn a_key_of_the_wrong_type_is_backend_and_loses_no_job() {
    let rig = Rig::new().await;
    for case in all_but_new_queues() {
        let calm = Calm::of(&rig, case).await;
        for key in keys_written(&calm) {
            meets_wrong_type(case, &calm, &key, &rig).await;
        }
    }
}

/// The keys of the queue that the case changes.
fn keys_written(calm: &Calm) -> Vec<String> {
    let mut keys = calm.before.keys_changed(&calm.after);
    keys.retain(|name| name.starts_with(&key(&queue(), "")));
    keys
}

async fn meets_wrong_type(case: Case, calm: &Calm, key: &str, rig: &Rig) {
    let what = format!("{case:?}, {key} of the wrong type");
    let world = case.prepare(rig, &rig.direct()).await;
    let store = rig.direct();
    let aside = format!("{key}:aside");
    let was_there: bool = rig.run(cmd("EXISTS").arg(key)).await;
    if was_there {
        rig.run::<()>(cmd("RENAME").arg(key).arg(&aside)).await;
    }
    rig.run::<()>(cmd("SET").arg(key).arg("by hand")).await;
    let answer = case.call(&store, &world).await;
    rig.run::<()>(cmd("DEL").arg(key)).await;
    if was_there {
        rig.run::<()>(cmd("RENAME").arg(&aside).arg(key)).await;
    }
    // Whether there is a token, and what is not there, is asked of a key of any type.
    if !key.ends_with(":wake") || answer.contains("Err") {
        assert!(answer.contains("Backend(") && answer.contains("WRONGTYPE"), "{what}: {answer}");
    }
    nothing_is_lost(&rig.dump().await, calm, &what);
    case.call(&store, &world).await;
    all_come_to_an_end(rig, &store, calm, &what).await;
}

/// One whose queue nobody has made has no job to lose, one that deletes a queue must lose them.
fn all_but_new_queues() -> impl Iterator<Item = Case> {
    let elsewhere = [
        Case::EnqueueNewQueue,
        Case::ClaimEmpty,
        Case::LimitNewQueue,
        Case::QuarantineNewQueue,
        Case::DeleteQueue,
        Case::WatchEndsNewQueue,
    ];
    Case::ALL.iter().copied().filter(move |case| !elsewhere.contains(case))
}

#[tokio::test]
async fn every_write_command_of_every_script_is_sent_by_some_case() {
    let rig = Rig::new().await;
    let mut sent = BTreeSet::new();
    for case in Case::ALL {
        sent.extend(writes_of(&rig, *case).await.into_iter().map(|name| (case.script(), name)));
    }
    for script in Case::ALL.iter().map(|case| case.script()).collect::<BTreeSet<_>>() {
        for command in WRITES.into_iter().filter(|command| names_command(script, command)) {
            assert!(sent.contains(&(script, command)), "no case of {script} sends {command}");
        }
    }
    assert!(!rig.dump().await.0.contains_key(&key(&other_queue(), "jobs")));
}

/// Whether the script's own text names the command.
fn names_command(script: &str, command: &str) -> bool {
    let path = format!("{}/lua/{script}.lua", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the script is there");
    text.contains(&format!("'{}'", command.to_uppercase()))
}

#[tokio::test]
async fn a_queue_that_may_not_be_deleted_stays_as_it_is() {
    let rig = Rig::new().await;
    let world = Case::DeleteQueue.prepare(&rig, &rig.direct()).await;
    let before = rig.dump().await;
    permit(&rig, "unlink", '-').await;
    let answer = Case::DeleteQueue.call(&rig.direct(), &world).await;
    permit(&rig, "unlink", '+').await;
    assert!(answer.contains("Backend("), "{answer}");
    assert_same(&before, &rig.dump().await, "not deleted");
}
