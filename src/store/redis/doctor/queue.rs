//! One queue: walks along its keys and asks for repairs.

use super::{
    Doctor, Examined, Finding, Inner, RedisStore,
    lanes::{Contradiction, LaneEntry, Twice, Walk, stale_and_token},
};
use crate::{
    model::{Fingerprint, JobId, QueueName, StoreError, record},
    store::{Change, Store, redis::decode, redis::scripts::Verb},
};
use redis::{Cmd, Value, from_redis_value};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// So many entries, or about so many bytes, make a slice.
const SLICE: (usize, u64) = (100, 512 * 1024);
/// A slice of a hash whose values nobody knows begins with so many.
const FIRST: usize = 8;
/// So many jobs are confirmed in one call.
const CONFIRM: usize = 50;
/// What only several slices tell is looked for so often before it is told.
const LOOKS: usize = 3;
/// For what another client does in two steps.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Suspects of one slice that are looked into.
const MAX_TWICE: usize = 20;
/// Hashes that hold something of jobs.
const OF_JOBS: [&str; 5] = ["tries", "errors", "results", "endings", "progress"];
const SETS: [&str; 7] =
    ["scheduled", "retry", "active", "completed", "archived", "cancelled", "quarantined"];

/// What the script found: check, id and detail.
#[derive(Debug)]
struct Fault {
    check: String,
    id: Vec<u8>,
    detail: Vec<u8>,
}

#[derive(Debug)]
struct Slice {
    next: Vec<u8>,
    read: u64,
    faults: Vec<Fault>,
    told: Vec<Vec<u8>>,
}

/// An unfinished job that a walk met: the set that it stands in, if any, and its header.
struct Waiting {
    set: Vec<u8>,
    id: Vec<u8>,
    head: Vec<u8>,
}

type Texts = Vec<Vec<u8>>;
type Ghosts = Vec<(Vec<u8>, Vec<u8>)>;

/// One look at a queue.
struct Visit<'a> {
    inner: &'a Inner,
    queue: &'a QueueName,
    mend: bool,
    sizes: HashMap<String, u64>,
    findings: Vec<Finding>,
    /// Quarantined jobs whose fingerprints are open.
    open: Vec<Vec<u8>>,
    /// Those that the look before met, and that are pending: mended when their entries are met.
    undecodable: HashMap<Vec<u8>, Vec<u8>>,
    met_undecodable: HashMap<Vec<u8>, Vec<u8>>,
}

fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("examine: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `SETTINGS` of the script lets pass.
fn bound_of(setting: &str) -> &'static str {
    match setting {
        "paused" => "1, or not be there",
        "limit" | "max_archived" => "a whole number, 0 to 9007199254740992, or not be there",
        "crash_limit" => "1 to 1000, or not be there",
        _ => "whole ms, 1 to 315360000000 (10 years), or not be there",
    }
}

impl Slice {
    fn read(answer: Value) -> Result<Self, StoreError> {
        let (next, read, faults, told): (Vec<u8>, u64, Texts, Texts) =
            from_redis_value(answer).map_err(backend)?;
        let fault = |three: &[Vec<u8>]| Fault {
            check: text(&three[0]),
            id: three[1].clone(),
            detail: three[2].clone(),
        };
        let faults = faults.chunks_exact(3).map(fault).collect();
        Ok(Self { next, read, faults, told })
    }
}

impl Fault {
    /// What was seen, in words.
    fn message(&self) -> String {
        let (id, detail) = (text(&self.id), text(&self.detail));
        let (first, rest) = detail.split_once(' ').unwrap_or((&detail, ""));
        let (said, counted) = detail.rsplit_once(' ').unwrap_or((&detail, ""));
        match &*self.check {
            "type" => format!("{id} is a {detail}"),
            "ttl" => format!("{id} ends in {detail} ms"),
            "wake" => format!("{detail} wake tokens"),
            "unfinished" | "ghosts" | "counter" => {
                format!("meta says {id} is {said}, the keys say {counted}")
            }
            "lanes" => format!("meta knows the lanes {first}, jobs have {rest}"),
            "no_record" => format!("{id} in {detail} has no record"),
            "entry" => format!("{id} in lane {first} has no record"),
            "no_place" if detail.is_empty() => format!("{id} stands nowhere"),
            "no_place" => format!("{id} stands nowhere, and has ended"),
            "places" if detail.is_empty() => format!("{id} stands in several sets"),
            "places" => format!("{id} stands in lane {first} and in a set"),
            "twice" => format!("{id} stands twice, in lanes {first} and {rest}"),
            "no_holder" => format!("{id} is active and has no fence"),
            "no_lease" => format!("{id} has a holder and no lease"),
            "leftover" => format!("{detail} of {id}, which is gone"),
            "key_of_nobody" => format!("{id} is held by {first}"),
            "key_missing" => format!("{id} does not hold {detail}"),
            "key_twice" => format!("{id} shares its key with {detail}"),
            "key_mode" => format!("{id} holds its key as {detail}"),
            "tries" => format!("tries of {id} are {detail:?}"),
            "setting" => format!("{id} in meta is {detail:?}, and must be {}", bound_of(&id)),
            "bad_id" => format!("{detail} has a record of {id:?}, which is no id"),
            "stray" if SETS.contains(&&*detail) => format!("{id:?} in {detail} is no id"),
            "stray" => format!("{id:?} in lane {first} is no id"),
            "ghost" => format!("ghosts says of {id}: {detail}"),
            "timer" => format!("{id} has no time in expiry"),
            "timer_of_nobody" => format!("expiry has {id}"),
            "ending" => format!("{id} is {detail} and has no ending"),
            "undecodable" => format!("the record of {id} cannot be read"),
            "open" => format!("{id} is quarantined, {detail} is open"),
            check => format!("{check}: {id} {detail}"),
        }
    }
}

impl Visit<'_> {
    async fn slice(
        &self,
        what: &str,
        cursor: &[u8],
        count: usize,
        more: &[Vec<u8>],
    ) -> Result<Slice, StoreError> {
        let args = |cmd: &mut Cmd| {
            cmd.arg(what).arg(cursor).arg(count);
            for arg in more {
                cmd.arg(&arg[..]);
            }
        };
        Slice::read(self.inner.repeated(Verb::Examine, self.queue, &args).await?)
    }

    async fn repair(&self, fault: &Fault, more: &[&[u8]]) -> Result<bool, StoreError> {
        let args = |cmd: &mut Cmd| {
            cmd.arg(&fault.check).arg(&fault.id[..]).arg(&fault.detail[..]);
            for arg in more {
                cmd.arg(*arg);
            }
        };
        let answer = self.inner.repeated(Verb::Repair, self.queue, &args).await?;
        Ok(decode::quarantined(&decode::lines(&answer)?)? == Change::Changed)
    }

    /// Tells of a fault, and mends it if that is wanted.
    async fn found(&mut self, fault: Fault, more: &[&[u8]]) -> Result<(), StoreError> {
        let check = super::checks::of(&fault.check);
        let mut finding = Finding::of(self.queue, check.check, fault.message());
        finding.id = Some(text(&fault.id));
        if fault.check == "type" && fault.id == b"wake" {
            finding.repairable = true;
        }
        if self.mend && finding.repairable {
            finding.repaired = self.repair(&fault, more).await?;
        }
        self.findings.push(finding);
        Ok(())
    }

    async fn all_found(&mut self, faults: Vec<Fault>) -> Result<(), StoreError> {
        for fault in faults {
            match &*fault.check {
                "open" => self.open.push(fault.id),
                // One counter, of which each job tells that needs it.
                "lanes" if self.findings.iter().any(|one| one.check == "lanes") => {}
                _ => self.found(fault, &[]).await?,
            }
        }
        Ok(())
    }

    fn is_empty(&self, name: &str) -> bool {
        !self.sizes.contains_key(name)
    }

    /// Walks along a hash or a sorted set, slices growing as far as its values allow.
    async fn walk(&mut self, what: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut cursor, mut count, mut told) = (b"0".to_vec(), FIRST, Vec::new());
        // What came since the first look is another's.
        while !self.is_empty(what) {
            let slice = self.slice(what, &cursor, count, &[]).await?;
            told.extend(slice.told);
            self.all_found(slice.faults).await?;
            count = match slice.read {
                read if read > SLICE.1 => (count / 2).max(1),
                read if read < SLICE.1 / 4 => (count * 2).min(SLICE.0),
                _ => count,
            };
            cursor = slice.next;
            if cursor == b"0" {
                break;
            }
        }
        Ok(told)
    }

    /// Types, times to live, sizes. Answers whether the queue can be walked along.
    async fn keys(&mut self) -> Result<bool, StoreError> {
        let slice = self.slice("keys", b"0", 0, &[]).await?;
        for three in slice.told.chunks_exact(3) {
            self.sizes.insert(text(&three[0]), text(&three[2]).parse().unwrap_or(0));
        }
        let broken = |fault: &Fault| fault.check == "type" && fault.id != b"wake";
        let whole = !slice.faults.iter().any(broken);
        self.all_found(slice.faults).await?;
        Ok(whole)
    }

    /// All lanes from where jobs come to where they leave.
    async fn lanes(&mut self, first: bool) -> Result<Walk, StoreError> {
        let mut walk = Walk::default();
        for lane in 0..10_u8 {
            let (mut cursor, name) = (b"0".to_vec(), lane.to_string());
            loop {
                let at_start = cursor == b"0";
                let slice = self.slice(&name, &cursor, SLICE.0, &[]).await?;
                let twice = walk.slice(lane, &slice.told, at_start);
                if first {
                    self.undecodable_entries(lane, &cursor, &slice.told).await?;
                    self.all_found(slice.faults).await?;
                    self.twice(twice).await?;
                }
                cursor = slice.next;
                if cursor == b"0" {
                    break;
                }
            }
        }
        Ok(walk)
    }

    async fn twice(&mut self, suspects: Vec<Twice>) -> Result<(), StoreError> {
        for Twice { id, one, other } in suspects.into_iter().take(MAX_TWICE) {
            let lane = |lane: u8| lane.to_string().into_bytes();
            let more = [id, lane(one.0), one.1, lane(other.0), other.1];
            let slice = self.slice("twice", b"0", 0, &more).await?;
            for fault in slice.faults {
                self.found(fault, &[&more[2], &more[4]]).await?;
            }
        }
        Ok(())
    }

    async fn undecodable_entries(
        &mut self,
        lane: u8,
        cursor: &[u8],
        told: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        if !self.mend || self.undecodable.is_empty() {
            return Ok(());
        }
        let from: usize = text(cursor).parse().unwrap_or(0);
        for (at, pair) in told.chunks_exact(2).enumerate() {
            let LaneEntry { id, token } = LaneEntry::read(&pair[0]);
            let stale = stale_and_token(&pair[1]).is_some_and(|(_, live)| Some(live) != token);
            let Some(head) = self.undecodable.get(id).filter(|_| !stale).cloned() else { continue };
            let place = [format!("{lane} {} ", from + at).as_bytes(), &pair[0]].concat();
            let fault = Fault { check: "undecodable".into(), id: id.to_vec(), detail: head };
            let mut finding = Finding::of(self.queue, "undecodable", fault.message());
            finding.id = Some(text(id));
            finding.repaired = self.repair(&fault, &[&place]).await?;
            self.undecodable.remove(id);
            self.findings.push(finding);
        }
        Ok(())
    }

    /// Jobs without a place in a set; on the way those whose records cannot be read are told of.
    async fn jobs(&mut self) -> Result<Vec<Waiting>, StoreError> {
        let mut nowhere = Vec::new();
        for three in self.walk("jobs").await?.chunks_exact(3) {
            let job =
                Waiting { set: three[0].clone(), id: three[1].clone(), head: three[2].clone() };
            let id = JobId::new(text(&job.id)).ok();
            let head = job.head.clone().into();
            let readable = id.is_some_and(|id| record::decode(self.queue, &id, head).is_ok());
            if !readable && job.set != b"active" {
                self.undecodable_job(&job).await?;
            }
            if job.set.is_empty() {
                nowhere.push(job);
            }
        }
        Ok(nowhere)
    }

    async fn undecodable_job(&mut self, job: &Waiting) -> Result<(), StoreError> {
        let (id, detail) = (job.id.clone(), job.head.clone());
        if job.set.is_empty() {
            self.met_undecodable.insert(id.clone(), detail.clone());
        }
        self.found(Fault { check: "undecodable".into(), id, detail }, &[b""]).await
    }

    async fn ghosts(&mut self) -> Result<Ghosts, StoreError> {
        let told = self.walk("ghosts").await?;
        Ok(told.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }

    /// What the lanes, the records and `ghosts` tell together. What only many slices show is told
    /// if it shows again and again.
    async fn pending(&mut self) -> Result<(), StoreError> {
        let mut walk = self.lanes(true).await?;
        let mut nowhere: Vec<Vec<u8>> = self.jobs().await?.into_iter().map(|job| job.id).collect();
        nowhere.retain(|id| !walk.is_pending(id));
        let mut ghosts = self.ghosts().await?;
        let mut wrong = walk.contradictions(&ghosts);
        for _ in 1..LOOKS {
            if nowhere.is_empty() && wrong.is_empty() {
                break;
            }
            walk = self.lanes(false).await?;
            nowhere.retain(|id| !walk.is_pending(id));
            ghosts = self.ghosts().await?;
            let again = walk.contradictions(&ghosts);
            wrong.retain(|one| again.contains(one));
        }
        for (lane, stale, all) in walk.mostly_stale(&ghosts) {
            let message = format!("{stale} of {all} entries of lane {lane} are stale");
            let mut finding = Finding::of(self.queue, "mostly_ghosts", message);
            finding.id = Some(format!("pending:{lane}"));
            self.findings.push(finding);
        }
        self.wrong_ghosts(wrong).await?;
        for ids in nowhere.chunks(CONFIRM) {
            let slice = self.slice("placeless", b"0", 0, ids).await?;
            self.all_found(slice.faults).await?;
        }
        Ok(())
    }

    async fn wrong_ghosts(&mut self, wrong: HashSet<Contradiction>) -> Result<(), StoreError> {
        for Contradiction { name, text, right } in wrong {
            let fault = Fault { check: "ghost".into(), id: name, detail: text };
            self.found(fault, &[&right]).await?;
        }
        Ok(())
    }

    /// A release opens a fingerprint before it moves the jobs: those that stay are told of.
    async fn open(&mut self) -> Result<(), StoreError> {
        if self.open.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(PATIENCE).await;
        for ids in std::mem::take(&mut self.open).chunks(CONFIRM) {
            let slice = self.slice("open", b"0", 0, ids).await?;
            for fault in slice.faults {
                let mut finding = Finding::of(self.queue, "open", fault.message());
                finding.id = Some(text(&fault.id));
                self.findings.push(finding);
                // Kept for the caller: the release is the store's own verb.
                self.open.push(fault.detail);
            }
        }
        Ok(())
    }

    /// Counters last: what was mended before has set them already.
    async fn counters(&mut self) -> Result<(), StoreError> {
        let slice = self.slice("counters", b"0", 0, &[]).await?;
        let mut faults = slice.faults;
        let names: u64 = slice.told.get(1).and_then(|n| text(n).parse().ok()).unwrap_or(0);
        let mut sum = None;
        if names > 5_000 {
            sum = self.sum_of_ghosts().await?;
            faults.extend(sum.as_ref().map(|(before, sum)| Fault {
                check: "ghosts".into(),
                id: b"ghosts".into(),
                detail: format!("{before} {sum}").into(),
            }));
        }
        let lanes;
        (lanes, faults) = faults.into_iter().partition(|fault| fault.check == "lanes");
        self.all_found(lanes).await?;
        let mut repaired = false;
        if self.mend && !faults.is_empty() {
            let (before, sum) = sum.map_or((String::new(), String::new()), |(b, s)| (b, s));
            let fault = Fault { check: "counters".into(), id: Vec::new(), detail: sum.into() };
            repaired = self.repair(&fault, &[before.as_bytes()]).await?;
        }
        for fault in faults {
            let check = super::checks::of(&fault.check).check;
            let mut finding = Finding::of(self.queue, check, fault.message());
            finding.id = Some(text(&fault.id));
            finding.repaired = repaired;
            self.findings.push(finding);
        }
        Ok(())
    }

    /// The sum of very many ghosts, if it differs from what `meta` says, twice, while nothing moved.
    async fn sum_of_ghosts(&mut self) -> Result<Option<(String, String)>, StoreError> {
        let mut found: Option<(String, String)> = None;
        for look in 0..2 {
            let before = self.slice("counters", b"0", 0, &[]).await?.told;
            // By name: a scan may give one twice.
            let ghosts: HashMap<_, _> = self.ghosts().await?.into_iter().collect();
            let after = self.slice("counters", b"0", 0, &[]).await?.told;
            let stale = |(_, text): (_, &Vec<u8>)| stale_and_token(text).map_or(0, |(n, _)| n);
            let sum: u64 = ghosts.iter().map(stale).sum();
            let said = before.first().map(|n| text(n)).unwrap_or_default();
            let this = (said, sum.to_string());
            let differs = before == after && this.0 != this.1;
            if !differs || look > 0 && found.as_ref() != Some(&this) {
                return Ok(None);
            }
            found = Some(this);
        }
        Ok(found)
    }

    async fn all(&mut self) -> Result<(), StoreError> {
        if !self.keys().await? || self.sizes.is_empty() {
            return Ok(());
        }
        for what in SETS {
            self.walk(what).await?;
        }
        self.walk("holder").await?;
        for what in OF_JOBS {
            self.walk(what).await?;
        }
        self.pending().await?;
        for what in ["unique", "seen", "crashes", "answers", "expiry"] {
            self.walk(what).await?;
        }
        self.open().await?;
        self.counters().await
    }
}

impl Doctor {
    /// Looks at a queue, and mends what is safe if `mend` is set: one thing at a time, each looked
    /// at again before it is written. What one repair brings to light the next look mends: repeat it
    /// until nothing more is repaired. What the server refuses of this queue is a finding.
    ///
    /// # Errors
    /// See [`Doctor`].
    pub async fn examine(&mut self, queue: &QueueName, mend: bool) -> Result<Examined, StoreError> {
        let mut visit = Visit {
            inner: &self.inner,
            queue,
            mend,
            sizes: HashMap::new(),
            findings: Vec::new(),
            open: Vec::new(),
            undecodable: self.undecodable.remove(queue).unwrap_or_default(),
            met_undecodable: HashMap::new(),
        };
        let mut failed = visit.all().await.err();
        let Visit { sizes, mut findings, open, met_undecodable, .. } = visit;
        self.undecodable.insert(queue.clone(), met_undecodable);
        for fingerprint in open.iter().map(|fp| text(fp)).collect::<HashSet<_>>() {
            let store = RedisStore(self.inner.clone(), None);
            let Some(fp) = Fingerprint::new(&fingerprint).ok().filter(|_| mend) else { continue };
            if let Err(error) = store.release(queue, &fp).await {
                failed = failed.or(Some(error));
                continue;
            }
            let moved =
                |one: &&mut Finding| one.check == "open" && one.message.contains(&fingerprint);
            findings.iter_mut().filter(moved).for_each(|one| one.repaired = true);
        }
        findings.extend(self.or_told(Some(queue), failed.map_or(Ok(()), Err))?.err());
        Ok(Examined { findings, jobs: sizes.get("jobs").copied().unwrap_or(0) })
    }
}
