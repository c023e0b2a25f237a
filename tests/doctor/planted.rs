//! Corruptions planted by hand, one per invariant: found, mended, and every surviving job runs.

use crate::{
    program::Program,
    support::{Keys, key},
};
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use sprag::{Inspector, QueueName, RedisStore, State, Store, WorkerId, store::Pace};
use std::{collections::BTreeSet, time::Duration};

const FP: &str = "11111111111111111111111111111111";

/// What is planted in the healthy queue, and which checks tell of it.
struct Planted {
    name: &'static str,
    /// Redis commands, `|` between; `@name` is a key of the queue, `_` a space inside of a word.
    commands: &'static str,
    checks: &'static [&'static str],
}

macro_rules! planted {
    ($($name:literal $commands:literal $($check:literal)+;)*) => {
        &[$(Planted { name: $name, commands: $commands, checks: &[$($check),+] }),*]
    };
}

const PLANTED: &[Planted] = planted! {
    "unfinished" "HINCRBY @meta unfinished 5" "unfinished";
    "no_unfinished" "HDEL @meta unfinished" "unfinished";
    "ghosts" "HINCRBY @meta ghosts 2" "ghosts" "unfinished";
    "tried" "HINCRBY @meta tried 1" "counter";
    "crashes" "HSET @meta crashes x" "counter";
    "quarantined" "HDEL @meta quarantined" "counter";
    "remembered" "HINCRBY @meta remembered -1" "counter";
    "lanes" "HSET @meta lanes 4" "lanes";
    "lanes_of_waiting" "HSET @meta lanes 74" "lanes";
    "entry" "LPUSH @pending:4 lost" "entry" "unfinished";
    "entry_with_token" "LPUSH @pending:7 _12_lost|HSET @meta entries 12" "entry" "unfinished";
    "no_record_in_scheduled" "ZADD @scheduled 9999999999999 lost" "no_record" "unfinished";
    "no_record_in_retry" "ZADD @retry 9999999999999 lost" "no_record" "unfinished";
    "no_record_in_active" "ZADD @active 9999999999999 lost" "no_record" "unfinished";
    "no_record_in_archived" "ZADD @archived 9999999999999 lost" "no_record";
    "no_record_in_completed" "ZADD @completed 9999999999999 lost" "no_record";
    "no_record_in_cancelled" "ZADD @cancelled 9999999999999 lost" "no_record";
    "record_gone" "HDEL @jobs pending-1" "entry";
    "record_of_active_gone" "HDEL @jobs active-1" "no_record";
    "no_place" "ZREM @scheduled scheduled-1" "no_place" "unfinished";
    "no_place_but_ended" "ZREM @cancelled cancelled-1" "no_place";
    "no_place_in_lane" "LREM @pending:7 1 urgent-1" "no_place" "unfinished";
    "two_sets" "ZADD @retry 9999999999999 scheduled-1" "places" "unfinished";
    "active_and_archived" "ZADD @archived 9999999999999 active-1" "places";
    "active_and_pending" "LPUSH @pending:4 active-1" "places" "unfinished";
    "one_too_many_of_cancelled" "LPUSH @pending:4 cancelled-1" "ghost" "unfinished";
    "cancelled_and_pending" "LPUSH @pending:7 cancelled-1" "places" "unfinished";
    "twice_in_a_lane" "LPUSH @pending:4 pending-1" "twice" "unfinished";
    "twice_with_token" "LPUSH @pending:4 _77_pending-1|HSET @meta entries 77" "twice" "unfinished";
    "twice_in_lanes" "LPUSH @pending:4 urgent-1" "twice" "unfinished";
    "no_holder" "HDEL @holder active-1" "no_holder";
    "holder_without_fence" "HSET @holder active-1 broken" "no_holder";
    "no_lease" "ZREM @active active-1" "no_lease" "no_place" "unfinished";
    "holder_of_nobody" "HSET @holder lost 1_w_fp=1" "no_lease";
    "tries" "HSET @tries lost 1_0" "leftover" "counter";
    "errors" "HSET @errors lost {}" "leftover";
    "results" "HSET @results lost 1" "leftover";
    "endings" "HSET @endings lost operator_1_-" "leftover";
    "progress" "HSET @progress pending-1 1" "leftover";
    "key_of_nobody" "HSET @unique k~gone lost" "key_of_nobody";
    "key_of_finished" "HSET @unique k~gone cancelled-1" "key_of_nobody";
    "key_broken" "HSET @unique k~gone _" "key_of_nobody";
    "throttle_without_end" "HSET @unique k~gone x_throttle_9999999999999" "key_of_nobody";
    "key_missing" "HDEL @unique k~held" "key_missing";
    "key_stolen_by_nobody" "HSET @unique k~held lost" "key_of_nobody" "key_missing";
    "ghost_too_many" "HSET @ghosts 4:pending-1 1_-|HINCRBY @meta ghosts 1" "no_place" "unfinished";
    "ghost_of_nothing" "HSET @ghosts 4:lost 2_-|HINCRBY @meta ghosts 2|HINCRBY @meta unfinished -2" "ghost";
    "ghost_count" "HSET @ghosts 4:stale-1 3_-|HINCRBY @meta ghosts 2|HINCRBY @meta unfinished -2" "ghost";
    "ghost_unreadable" "HSET @ghosts 4:pending-1 broken" "ghost";
    "timer_of_nobody" "ZADD @expiry 9999999999999 deadline_lost" "timer_of_nobody";
    "no_deadline" "ZREM @expiry deadline_late-1" "timer";
    "no_end_of_seen" "HSET @seen lost 11111111111111111111111111111111_9999999999999|HINCRBY @meta remembered 1" "timer";
    "no_end_of_crashes" "HSET @crashes 11111111111111111111111111111111 1_9999999999999_1|HINCRBY @meta crashes 1" "timer";
    "answers_of_no_time" "HSET @answers lost broken" "timer";
    "wake_twice" "RPUSH @wake 1 1 1" "wake";
    "wake_wrong" "DEL @wake|SET @wake x" "type";
    "undecodable_scheduled" "HSET @jobs scheduled-1 broken" "undecodable";
    "undecodable_pending" "HSET @jobs pending-1 broken" "undecodable";
    "no_ending" "HDEL @endings cancelled-1" "ending";
    "open" "HDEL @quarantine 11111111111111111111111111111111|HINCRBY @meta quarantined -1|HSET @jobs q-1 at=1764500000000_fp=11111111111111111111111111111111_kind=k_codec=json\n1|ZADD @quarantined 9999999999999 q-1|HSET @endings q-1 quarantined_1764500000000_-_fp=11111111111111111111111111111111" "open";
    "tries_unreadable" "HSET @tries retry-1 b\\xff" "tries";
    "tries_of_one_word" "HSET @tries retry-1 7" "tries";
    "holder_without_id" "HSET @holder  1_w_fp=1" "no_lease";
    "key_of_another_mode" "HSET @unique k~held held-1_debounce" "key_mode";
    "key_throttled" "HSET @unique k~held held-1_throttle_9999999999999" "key_mode";
    "ghosts_unreadable" "HSET @meta ghosts x|HSET @jobs scheduled-1 broken|LREM @pending:4 0 pending-1" "ghosts" "no_place" "unfinished";
    "ghosts_too_high" "HSET @meta ghosts 100000000000000000000|HSET @tries lost 1_0|LPUSH @pending:4 lost" "ghosts" "entry";
    "tried_unreadable" "HSET @meta tried abc|HSET @tries lost 1_0" "counter" "leftover";
    "tried_empty" "HSET @meta tried |HSET @tries lost 1_0" "counter" "leftover";
    "tried_with_zeros" "HSET @meta tried 01|HSET @tries lost 1_0" "counter" "leftover";
    "all_unreadable" "HSET @meta ghosts 1e20 tried x unfinished 1e20 crashes x remembered x quarantined x|ZADD @retry 9999999999999 scheduled-1|HSET @tries lost 1_0" "ghosts" "counter" "unfinished" "places" "leftover";
    "ttl" "EXPIRE @jobs 1000" "ttl";
    "unlisted" "SREM sprag:queues q" "unlisted";
    "not_there" "SADD sprag:queues empty" "not_there";
};

async fn plant(connection: &mut MultiplexedConnection, queue: &QueueName, commands: &str) {
    for command in commands.split('|') {
        let mut cmd = redis::Cmd::new();
        for (at, word) in command.split(' ').enumerate() {
            match word.strip_prefix('@') {
                Some(name) => cmd.arg(key(queue, name)),
                None if at == 0 => cmd.arg(word),
                None => match word.strip_suffix("\\xff") {
                    Some(begin) => cmd.arg([begin.as_bytes(), b"\xff"].concat()),
                    None if word.starts_with("sprag:") => cmd.arg(word),
                    None => cmd.arg(word.replace('_', " ")),
                },
            };
        }
        cmd.query_async::<redis::Value>(connection).await.expect(command);
    }
}

/// A queue with a job or two in each state, and all that jobs may have.
fn healthy(sprag: &Program) {
    let enqueue = |id: &str, more: &[&str]| {
        sprag.object(&[&["enqueue", "q", "k", "1", "--id", id], more].concat());
    };
    enqueue("active-1", &[]);
    sprag.object(&["claim", "q", "--worker", "w", "--lease", "20h"]);
    for n in 1..=3 {
        enqueue(&format!("pending-{n}"), &[]);
    }
    enqueue("urgent-1", &["--priority", "7"]);
    enqueue("held-1", &["--unique", "held", "--delay", "1d"]);
    enqueue("late-1", &["--deadline", "1d"]);
    enqueue("scheduled-1", &["--delay", "1d"]);
    for id in ["cancelled-1", "stale-1"] {
        enqueue(id, &[]);
        sprag.object(&["job", "cancel", "q", id]);
    }
    enqueue("retry-1", &["--priority", "9"]);
    let fence = sprag.claim("q")["fence"].to_string();
    let retry = ["retry", "q", "retry-1", "--fence", &fence, "--error", "e", "--delay", "1d"];
    sprag.object(&retry);
    sprag.object(&["quarantine", "add", "q", FP]);
}

fn found(sprag: &Program, args: &[&str]) -> (i32, Vec<Value>) {
    let ran = sprag.run(&[&["--json", "doctor"], args].concat());
    assert_eq!(ran.stderr, "", "{ran:?}");
    let mut objects = ran.objects();
    // Of the server another test tells.
    objects.retain(|one| !one["queue"].is_null());
    (ran.code, objects)
}

fn checks(found: &[Value]) -> BTreeSet<String> {
    found.iter().map(|one| one["check"].as_str().expect("a word").to_owned()).collect()
}

async fn all_run(store: &RedisStore, queue: &QueueName, case: &str, faults: &mut Vec<String>) {
    let inspector = Inspector::new(store.clone());
    let worker = WorkerId::new("w2").expect("worker");
    store.sweep(queue, Pace::Now).await.expect("swept");
    for state in [State::Scheduled, State::Retry] {
        let mut jobs = inspector.jobs(queue, state).expect("a state");
        let mut ids = Vec::new();
        while let Some(page) = jobs.next_page().await.expect("a page") {
            ids.extend(page.into_iter().map(|job| job.id));
        }
        for id in ids {
            inspector.run(queue, &id).await.expect("runs");
        }
    }
    let before = inspector.queue(queue).await.expect("there");
    let mut ran = 0;
    loop {
        let claim = store.claim(queue, &worker, 100, Duration::from_secs(60)).await.expect("claim");
        if claim.jobs.is_empty() && !claim.more {
            break;
        }
        ran += claim.jobs.len() as u64 + claim.ended.len() as u64;
    }
    if ran + before.active != before.unfinished {
        faults.push(format!("{case}: {ran} of {before:?} ran"));
    }
}

#[tokio::test]
async fn each_corruption_is_found_and_mended_and_every_surviving_job_runs() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    let mut connection = sprag.server.connection().await;
    let store = RedisStore::builder(sprag.server.url()).build().expect("a store");
    healthy(&sprag);
    assert_eq!(found(&sprag, &[]), (0, vec![]), "healthy");
    let dump = Dump::of(&mut connection).await;
    let mut faults = Vec::new();
    for Planted { name, commands, checks: expected } in PLANTED {
        dump.restore(&mut connection).await;
        plant(&mut connection, &queue, &commands.replace("\\n", "\n")).await;
        let before = Dump::of(&mut connection).await;
        let (_, told) = found(&sprag, &[]);
        let missing: Vec<_> =
            expected.iter().filter(|check| !checks(&told).contains(**check)).collect();
        if !missing.is_empty() {
            faults.push(format!("{name}: {missing:?} not in {told:#?}"));
            continue;
        }
        if before != Dump::of(&mut connection).await {
            faults.push(format!("{name}: a look changed something"));
        }
        let (code, mended) = found(&sprag, &["--repair", "--yes"]);
        let silent: Vec<_> =
            expected.iter().filter(|check| !checks(&mended).contains(**check)).collect();
        if !silent.is_empty() {
            faults.push(format!("{name}: {silent:?} not among what was mended: {mended:#?}"));
        }
        if code != 0 || mended.iter().any(|one| one["repaired"] != true) {
            faults.push(format!("{name}: not mended, exit code {code}: {mended:#?}"));
            continue;
        }
        let (code, left) = found(&sprag, &[]);
        if code != 0 || !left.is_empty() {
            faults.push(format!("{name}: left after repair: {left:#?}, of {mended:#?}"));
            continue;
        }
        store.sweep(&queue, Pace::Now).await.expect("swept");
        Keys::read(&mut connection, &queue).await.check();
        all_run(&store, &queue, name, &mut faults).await;
        let (_, left) = found(&sprag, &[]);
        if !left.is_empty() {
            faults.push(format!("{name}: left after all ran: {left:#?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_key_of_another_type_is_told_and_left_alone() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    let mut connection = sprag.server.connection().await;
    plant(&mut connection, &queue, "SET @results x").await;
    let (code, told) = found(&sprag, &["--repair", "--yes"]);
    assert_eq!((code, checks(&told)), (1, ["type".to_owned()].into()), "{told:?}");
    assert_eq!(told[0]["repaired"], false);
}

#[tokio::test]
async fn a_queue_that_cannot_be_looked_at_stops_no_other() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    sprag.object(&["enqueue", "a", "k", "1"]);
    let mut connection = sprag.server.connection().await;
    plant(&mut connection, &queue, "HSET @errors lost x").await;
    // Of `a` nothing may be read.
    let user = "ACL SETUSER u on >p ~sprag:{q}:* ~sprag:queues ~sprag:schema ~sprag:workers ~sprag:{a}:meta ~sprag:{a}:jobs &* +@all";
    plant(&mut connection, &queue, user).await;
    let url = sprag.server.url() + "?user=u&pass=p";
    let (code, told) = found(&sprag, &["--url", &url, "--repair", "--yes"]);
    let of = |check: &str| told.iter().find(|one| one["check"] == check).expect(check).clone();
    assert_eq!((code, &of("failed")["queue"]), (1, &"a".into()), "{told:#?}");
    assert_eq!(of("leftover")["repaired"], true, "{told:#?}");
}

#[tokio::test]
async fn a_record_with_an_id_that_no_job_can_have_is_told_and_kept_out_of_the_lanes() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    let mut connection = sprag.server.connection().await;
    let commands = "HSET @jobs a_b x|LPUSH @pending:4 a_b|HSET @jobs c_d x|ZADD @retry 9 c_d|HINCRBY @meta unfinished 2";
    plant(&mut connection, &queue, commands).await;
    let (code, told) = found(&sprag, &[]);
    let both = ["bad_id", "stray"].map(str::to_owned).into();
    assert_eq!((code, checks(&told)), (1, both), "{told:#?}");
    let (code, told) = found(&sprag, &["--repair", "--yes"]);
    assert_eq!((code, told.len()), (1, 4), "{told:#?}");
    for _ in 0..2 {
        let (code, told) = found(&sprag, &["--repair", "--yes"]);
        let message = told[0]["message"].as_str().expect("text");
        assert!(message.contains("which is no id") && told.len() == 2, "{told:#?}");
        assert_eq!((code, checks(&told)), (1, ["bad_id".to_owned()].into()));
    }
    plant(&mut connection, &queue, "HDEL @jobs a_b c_d").await;
    assert_eq!(found(&sprag, &[]), (0, vec![]));
}

#[tokio::test]
async fn a_reclaimed_job_s_lane_is_known_whatever_meta_said() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    sprag.object(&["enqueue", "q", "k", "1", "--priority", "7"]);
    sprag.object(&["claim", "q", "--worker", "w", "--lease", "20h"]);
    let id = sprag.object(&["job", "list", "q", "--state", "active"])["id"].clone();
    let mut connection = sprag.server.connection().await;
    let id = id.as_str().expect("text");
    plant(&mut connection, &queue, &format!("HSET @meta lanes 4|ZADD @active 1 {id}")).await;
    assert_eq!(sprag.object(&["sweep", "q"])["reclaimed"], 1);
    assert_eq!(found(&sprag, &[]), (0, vec![]));
    assert_eq!(sprag.claim("q")["id"], id);
}

#[tokio::test]
async fn a_setting_that_cannot_be_read_is_told_with_its_bound() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    let mut connection = sprag.server.connection().await;
    for (name, value) in [
        ("limit", "-1"),
        ("limit", "abc"),
        ("limit", ""),
        ("paused", "0"),
        ("crash_limit", "0"),
        ("crash_window", "1d"),
        ("max_archived", "-1"),
        ("retain_archived", "1.5"),
    ] {
        let mut set = redis::cmd("HSET");
        set.arg(key(&queue, "meta")).arg(name).arg(value);
        set.query_async::<()>(&mut connection).await.expect("set");
        let (code, told) = found(&sprag, &[]);
        let message = told[0]["message"].as_str().expect("text");
        assert!(message.starts_with(&format!("{name} in meta is {value:?}, and must be")));
        assert_eq!((code, checks(&told)), (1, ["setting".to_owned()].into()), "{told:#?}");
        if name == "limit" {
            assert_eq!(sprag.object(&["enqueue", "q", "k", "1"])["state"], "pending", "{value}");
            assert_eq!(sprag.object(&["queue", "show", "q"])["limit"], Value::Null, "{value}");
        }
        let mut unset = redis::cmd("HDEL");
        unset.arg(key(&queue, "meta")).arg(name);
        unset.query_async::<()>(&mut connection).await.expect("unset");
    }
    assert_eq!(found(&sprag, &[]), (0, vec![]));
}

#[tokio::test]
async fn what_nobody_can_read_on_the_lists_hides_no_queue() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    let mut connection = sprag.server.connection().await;
    let told = |args: &[&str]| {
        let ran = sprag.run(&[&["--json", "doctor"], args].concat());
        let keeps = |check: &str| check.starts_with("list_") || check.starts_with("worker");
        let known: Vec<_> = checks(&ran.objects()).into_iter().filter(|one| keeps(one)).collect();
        (ran.code, known.join(" "))
    };
    assert_eq!(told(&[]), (0, String::new()));
    for (key, set) in [("sprag:queues", "SADD"), ("sprag:workers", "HSET")] {
        let mut cmd = redis::cmd(set);
        cmd.arg(key).arg(b"b\xff").arg(b"\xff \xff");
        cmd.query_async::<()>(&mut connection).await.expect("planted");
    }
    assert_eq!(told(&[]), (0, "list_member worker_entry".to_owned()));
    let ran = sprag.run(&["--json", "queue", "list"]);
    assert!(ran.code == 0 && ran.objects().len() == 1, "{ran:?}");
    let ran = sprag.run(&["--json", "worker", "list"]);
    assert!(ran.code == 0 && ran.objects().is_empty(), "{ran:?}");
    assert_eq!(told(&["--repair", "--yes"]), (0, "list_member worker_entry".to_owned()));
    assert_eq!(told(&[]), (0, "worker_entry".to_owned()));

    plant(&mut connection, &queue, "SET sprag:queues x").await;
    plant(&mut connection, &queue, "SET sprag:workers x").await;
    plant(&mut connection, &queue, "HSET @errors lost x").await;
    assert_eq!(told(&[]), (1, "list_type workers_type".to_owned()));
    let (code, told) = found(&sprag, &["--repair", "--yes"]);
    assert!(code == 1 && told[0]["check"] == "leftover" && told[0]["repaired"] == true, "{told:?}");
}

#[tokio::test]
async fn more_than_one_repair_is_asked_for() {
    let sprag = Program::start().await;
    let queue = QueueName::new("q").expect("queue");
    healthy(&sprag);
    let mut connection = sprag.server.connection().await;
    plant(&mut connection, &queue, "HINCRBY @meta tried 1|HSET @errors lost x").await;
    let error = sprag.error(2, &["doctor", "--repair"]);
    assert!(error["message"].as_str().expect("text").contains("mend 2 findings"), "{error}");
    assert_eq!(found(&sprag, &["q"]).1.len(), 2);
    let ran = sprag.run(&["doctor", "q", "--repair", "--yes"]);
    assert!(ran.code == 0 && ran.stdout.contains("mended"), "{ran:?}");
    assert!(ran.stderr.contains("2 mended, all is well: 1 queues, "), "{ran:?}");
    assert_eq!(sprag.error(3, &["doctor", "nobody"])["error"], "not_found");
}

/// All keys of the server, as DUMP gives them: to begin again, and to see that nothing changed.
#[derive(PartialEq)]
struct Dump(Vec<(String, Vec<u8>, i64)>);

impl Dump {
    async fn of(connection: &mut MultiplexedConnection) -> Self {
        let mut keys: Vec<String> =
            redis::cmd("KEYS").arg("*").query_async(connection).await.expect("keys");
        keys.sort();
        let mut all = Vec::new();
        for name in keys {
            let value: Vec<u8> =
                redis::cmd("DUMP").arg(&name).query_async(connection).await.expect("dump");
            let ttl: i64 =
                redis::cmd("EXPIRETIME").arg(&name).query_async(connection).await.expect("ttl");
            all.push((name, value, ttl));
        }
        Self(all)
    }

    async fn restore(&self, connection: &mut MultiplexedConnection) {
        redis::cmd("FLUSHALL").query_async::<()>(connection).await.expect("flushed");
        for (name, value, _) in &self.0 {
            let mut restore = redis::cmd("RESTORE");
            restore.arg(name).arg(0).arg(value);
            restore.query_async::<()>(connection).await.expect("restored");
        }
    }
}
