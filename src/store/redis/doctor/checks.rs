//! The words of the findings: how bad each is, what it means, what to do.

use super::Severity::{self, Fail, Note, Warn};

/// What is known of a kind of finding.
pub(super) struct Check {
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    pub(super) repairable: bool,
    pub(super) means: &'static str,
    pub(super) advice: &'static str,
}

const REPAIR: &str = "run sprag doctor --repair";

macro_rules! checks {
    ($($check:literal $severity:ident $repairable:literal $means:literal $advice:expr;)*) => {
        const CHECKS: &[Check] = &[$(Check {
            check: $check, severity: $severity, repairable: $repairable, means: $means, advice: $advice,
        }),*];
    };
}

checks! {
    // A queue's data.
    "type" Fail false "the key holds something else than sprag keeps there; every call that needs it fails" "look at who wrote it; move it away with RENAME, then run sprag doctor again";
    "ttl" Fail true "the key will vanish, and with it what is in it" "run sprag doctor --repair; find who sets it";
    "wake" Note true "more wake tokens than one; workers look more often than they need" REPAIR;
    "unfinished" Fail true "the counter that limits judge is wrong: enqueues are refused too early or too late" REPAIR;
    "ghosts" Fail true "stale entries are miscounted, and with them the unfinished jobs" REPAIR;
    "counter" Fail true "a counter that tells scripts where to look is wrong: failures, crashes or quarantine may be passed over" REPAIR;
    "lanes" Fail true "a lane holds jobs and nobody looks there" REPAIR;
    "no_record" Fail true "an id stands there and its record is gone: the job's content is lost" "run sprag doctor --repair to take the id out; enqueue the job again";
    "entry" Warn true "a lane's entry has no record behind it: the job's content is lost; claim would skip it" "run sprag doctor --repair to take the id out; enqueue the job again";
    "no_place" Fail true "a record that stands nowhere: the job never runs" "run sprag doctor --repair: it is pending again, or archived if it ended";
    "places" Fail true "one id in two places: the job may run twice, or after its end" "run sprag doctor --repair: one place is kept";
    "twice" Warn true "two live entries of one job: it may run twice" REPAIR;
    "no_holder" Fail true "a lease without a readable fence: its worker's settlement is refused" "run sprag doctor --repair: the lease ends, and sweep brings the job back";
    "no_lease" Fail true "a holder without a lease: the job would run for ever" "run sprag doctor --repair: it gets a lease that has ended, and sweep brings the job back";
    "leftover" Warn true "something is kept of a job that is gone: memory that nobody frees" REPAIR;
    "key_of_nobody" Warn true "a unique key whose job is gone or finished" REPAIR;
    "key_missing" Warn true "an unfinished job does not hold its unique key: a second one of its kind may come" REPAIR;
    "key_twice" Warn false "two unfinished jobs claim one unique key" "look at both with sprag job show and cancel the one that is not wanted";
    "ghost" Warn true "what ghosts says contradicts the lane: a job may be skipped, or a stale entry run" REPAIR;
    "mostly_ghosts" Warn false "most entries of a lane are stale: memory, and claims that skip up to 1,000 a call" "let workers claim: they drop them as they meet them";
    "timer" Warn true "something that ends by time is not on the list of what ends: it would stay for ever" REPAIR;
    "timer_of_nobody" Note true "a time that nothing ends at" REPAIR;
    "ending" Warn true "a finished job does not tell how it ended; a quarantined one is not found by a release" REPAIR;
    "undecodable" Warn true "nobody can read the job's record; claim will archive it as undecodable" "run sprag doctor --repair to archive it now; look at it with sprag job show";
    "open" Warn true "a quarantined job whose fingerprint is open: a release stopped half-way" "run sprag quarantine release again, or sprag doctor --repair";
    "unlisted" Warn true "the queue is not on the list of queues: commands and pages that show all do not show it" REPAIR;
    "setting" Warn false "a setting in meta that nobody can read as it was meant: a limit holds nobody back, another has its default or a senseless value, and whatever stands in paused pauses" "sprag queue limit, pause or resume set theirs anew; of the others HDEL the field from the queue's meta, or HSET a value within the bound";
    "tries" Warn true "attempts and crashes that nobody can read count as none" REPAIR;
    "key_mode" Warn true "a job holds its own unique key in a mode that is not its own: the key is freed too early" REPAIR;
    "bad_id" Fail false "no job can have this id: sprag never runs the record, and never deletes it" "read the record with HGET from the queue's jobs, enqueue its payload anew, then HDEL the record";
    "stray" Fail true "an id that no job can have stands where jobs wait or end: a claim or a listing that meets it fails" "run sprag doctor --repair: it is taken out, its record stays";
    "failed" Fail false "the look at this queue, or a repair, ended early: more may be wrong here" "mend what else is told of the queue, then run sprag doctor again; if it stays, the message says what the server refused";
    // The namespace's lists.
    "list_type" Fail false "the list of queues is something else than a set: no queue can be made, and commands that show all fail" "look at who wrote it; move it away with RENAME, then run sprag doctor --repair";
    "list_member" Warn true "a name that no queue can have is on the list of queues; it is passed over" "run sprag doctor --repair to take it out";
    "workers_type" Fail false "the list of workers is something else than a hash: workers are not seen and cannot be asked to stop" "look at who wrote it; move it away with RENAME: workers list themselves again with their next beat";
    "worker_entry" Warn false "an entry of the list of workers that nobody can read; it is passed over" "if no newer sprag wrote it, HDEL it from the list of workers";
    "lists" Fail false "a list of the namespace, or the keys of a node, could not be read: queues or workers may be missing here" "see the message: a node that is away (CLUSTER NODES), or commands that the user may not run (sprag acl operator)";
    "not_there" Note true "a queue is on the list of queues and has no keys" REPAIR;
    // The server.
    "node_away" Fail false "queues whose slots this node has stand still: enqueues fail, and what waits there waits" "see CLUSTER NODES: bring the node back, or promote a replica of it";
    "info_refused" Warn false "nothing is known of the server's version, memory, persistence, replicas and clients" "ACL SETUSER: +info; or look at INFO yourself";
    "config_refused" Note false "how many clients and replicas the server asks for is not known, and snapshots are only guessed" "ACL SETUSER: +config|get; or look at CONFIG GET maxclients, min-replicas-to-write and save yourself";
    "slowlog_refused" Note false "whether scripts took long is not known" "ACL SETUSER: +slowlog|get; or look at SLOWLOG GET yourself";
    "version" Fail false "scripts need commands of Redis 7.0" "upgrade to a supported release";
    "cve" Warn false "known holes in the server's Lua let who may run scripts run code of their own" "upgrade to the named release; if your distribution patches its own, check its advisory; let nobody but your apps run EVAL";
    "eviction" Fail false "when memory is full the server deletes whatever key it likes: whole queues" "CONFIG SET maxmemory-policy noeviction, and in redis.conf";
    "eviction_volatile" Note false "sprag's queues have no TTL and are safe; noeviction says so plainly" "consider maxmemory-policy noeviction";
    "memory" Warn false "when memory is full enqueues are refused as unavailable" "raise maxmemory, shorten retentions, or limit queues: sprag queue limit";
    "no_maxmemory" Note false "without maxmemory the system kills the server when memory is full" "set maxmemory below what the machine has, with noeviction";
    "fragmentation" Note false "the server holds much more memory than its data need" "consider activedefrag yes";
    "no_persistence" Warn false "a restart of the server loses every job" "set appendonly yes";
    "no_aof" Note false "a crash of the server loses what came since the last snapshot" "set appendonly yes, appendfsync everysec";
    "aof_write" Fail false "the append-only file cannot be written: what is done now is lost at a restart" "look at the disk and the server's log";
    "snapshot" Warn false "the last snapshot failed; with stop-writes-on-bgsave-error all writes are refused" "look at the disk and the server's log";
    "fsync" Note false "the disk is slow: a write had to wait for it" "give the server a disk of its own";
    "no_replica" Note false "there is one copy of all jobs" "consider a replica, with min-replicas-to-write 1";
    "min_replicas" Note false "a failover may lose the last writes" "consider min-replicas-to-write 1 and min-replicas-max-lag 10";
    "replica" Fail false "this is a replica: nothing can be written" "give sprag the master's address";
    "clock" Warn false "times that clients compute, such as deadlines, are off by that; a failover to a server whose clock is behind holds fences back" "run NTP on all machines";
    "latency" Note false "every call takes at least so long" "look at the network, and at SLOWLOG for commands of others";
    "slowlog" Note false "scripts took longer than 10 ms: other clients waited" "look at SLOWLOG GET; smaller batches, smaller payloads";
    "acl" Fail false "this user may not run commands that an operator needs: calls are refused" "give it the rules that sprag acl operator prints, or those of what it is there for";
    "acl_unknown" Note false "the server cannot tell a script what its user may run" "as an administrator: ACL DRYRUN <user> EVALSHA …";
    "huge_queue" Note false "moving this queue's slot blocks the server for seconds, and may fail" "drain the queue before you move slots; spread work over several queues";
    "clients" Warn false "soon nobody can connect" "raise maxclients, or find who opens so many connections";
    "unknown" Warn false "this sprag does not know the finding" "use the newest sprag";
}

/// What is known of a check.
pub(super) fn of(check: &str) -> &'static Check {
    let known = CHECKS.iter().find(|known| known.check == check);
    known.unwrap_or(&CHECKS[CHECKS.len() - 1])
}
