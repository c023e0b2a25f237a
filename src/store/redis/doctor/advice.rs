//! Judges what the server says of itself. No I/O.

use super::{Finding, server::Facts};
use crate::store::Role;

/// More jobs than this in a queue: moving its slot blocks the server for a second.
const HUGE: u64 = 150_000;
const MB: u64 = 1 << 20;

/// Redis: the first patch release of each line without the known holes in Lua. Lines that are not
/// named, below 8.2, got no patch.
const REDIS_SAFE: [[u64; 3]; 5] = [[6, 2, 20], [7, 2, 11], [7, 4, 6], [8, 0, 4], [8, 2, 2]];
const VALKEY_SAFE: [[u64; 3]; 3] = [[7, 2, 11], [8, 0, 6], [8, 1, 4]];

fn version(text: &str) -> [u64; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

impl Facts {
    fn text(&self, name: &str) -> &str {
        self.info.get(name).map_or("", |value| value)
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    fn config(&self, name: &str) -> Option<u64> {
        self.config.get(name)?.parse().ok()
    }
}

/// Everything that is worth telling.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (check, why) in &facts.untold {
        found.push(Finding::new(check, format!("not told: {why}")));
    }
    if !facts.info.is_empty() {
        of_version(facts, &mut found);
        memory(facts, &mut found);
        persistence(facts, &mut found);
        replication(facts, &mut found);
        clients(facts, &mut found);
    }
    work(facts, &mut found);
    user(facts, &mut found);
    found
}

fn of_version(facts: &Facts, found: &mut Vec<Finding>) {
    let valkey = !facts.text("valkey_version").is_empty();
    let (name, said) = match valkey {
        true => ("Valkey", facts.text("valkey_version")),
        false => ("Redis", facts.text("redis_version")),
    };
    let is = version(said);
    if !valkey && is[0] < 7 {
        found.push(Finding::new("version", format!("{name} {said} is older than 7.0")));
    }
    let safe: &[[u64; 3]] = if valkey { &VALKEY_SAFE } else { &REDIS_SAFE };
    let newest = safe[safe.len() - 1];
    let line = safe.iter().find(|known| known[..2] == is[..2]);
    let next = safe.iter().find(|known| known[..2] > is[..2]);
    let needed = match line {
        Some(line) => (is < *line).then_some(line),
        None => (is < newest).then_some(next.unwrap_or(&newest)),
    };
    if let Some([major, minor, patch]) = needed {
        let holes = "CVE-2025-49844, CVE-2025-46817, CVE-2025-46818, CVE-2025-46819";
        let older = match is < [7, 2, 7] || is[..2] == [7, 4] && is[2] < 2 {
            true => ", CVE-2024-46981",
            false => "",
        };
        let message = format!("{name} {said}: {holes}{older}; fixed in {major}.{minor}.{patch}");
        found.push(Finding::new("cve", message));
    }
}

fn memory(facts: &Facts, found: &mut Vec<Finding>) {
    let policy = facts.text("maxmemory_policy");
    let (used, max) = (facts.number("used_memory"), facts.number("maxmemory"));
    if policy.starts_with("allkeys-") {
        found.push(Finding::new("eviction", format!("maxmemory-policy is {policy}")));
    } else if policy.starts_with("volatile-") {
        found.push(Finding::new("eviction_volatile", format!("maxmemory-policy is {policy}")));
    }
    if max == 0 {
        found.push(Finding::new("no_maxmemory", "maxmemory is not set".to_owned()));
    } else if used.saturating_mul(100) > max.saturating_mul(80) {
        let share = used.saturating_mul(100) / max;
        let message = format!("{share} % of {} MiB maxmemory are used", max / MB);
        found.push(Finding::new("memory", message));
    }
    let ratio: f64 = facts.text("mem_fragmentation_ratio").parse().unwrap_or(1.0);
    // Of little data much is said.
    if ratio > 1.5 && used > 256 * MB {
        found.push(Finding::new("fragmentation", format!("mem_fragmentation_ratio is {ratio}")));
    }
}

fn persistence(facts: &Facts, found: &mut Vec<Finding>) {
    let aof = facts.text("aof_enabled") == "1";
    // Who may not read the settings sees by what was done.
    let snapshots = match facts.config.get("save") {
        Some(points) => !points.is_empty(),
        None => facts.number("rdb_saves") > 0 || facts.text("rdb_bgsave_in_progress") == "1",
    };
    if !aof && !snapshots {
        let message = "no append-only file and no snapshots".to_owned();
        found.push(Finding::new("no_persistence", message));
    } else if !aof {
        found.push(Finding::new("no_aof", "snapshots, but no append-only file".to_owned()));
    }
    if aof && facts.text("aof_last_write_status") == "err" {
        found.push(Finding::new("aof_write", "aof_last_write_status is err".to_owned()));
    }
    if facts.text("rdb_last_bgsave_status") == "err" {
        found.push(Finding::new("snapshot", "rdb_last_bgsave_status is err".to_owned()));
    }
    let delayed = facts.number("aof_delayed_fsync");
    if delayed > 0 {
        found.push(Finding::new("fsync", format!("aof_delayed_fsync is {delayed}")));
    }
}

fn replication(facts: &Facts, found: &mut Vec<Finding>) {
    if facts.text("role") == "slave" {
        found.push(Finding::new("replica", "the role is replica".to_owned()));
    } else if facts.number("connected_slaves") == 0 {
        found.push(Finding::new("no_replica", "no replica is connected".to_owned()));
    } else if facts.config("min-replicas-to-write") == Some(0) {
        found.push(Finding::new("min_replicas", "min-replicas-to-write is 0".to_owned()));
    }
}

fn clients(facts: &Facts, found: &mut Vec<Finding>) {
    let connected = facts.number("connected_clients");
    let most = facts.config("maxclients").unwrap_or_else(|| facts.number("maxclients"));
    if most > 0 && connected * 100 > most * 80 {
        let blocked = facts.number("blocked_clients");
        let message = format!("{connected} of {most} clients, {blocked} of them blocked");
        found.push(Finding::new("clients", message));
    }
}

fn work(facts: &Facts, found: &mut Vec<Finding>) {
    if facts.clock_ahead.abs() > 5_000 {
        let off = format!("this machine's clock is {} ms ahead", facts.clock_ahead);
        found.push(Finding::new("clock", off));
    }
    if facts.ping > 5_000 {
        found.push(Finding::new("latency", format!("a PING takes {} µs", facts.ping)));
    }
    if let Some(slow) = facts.slow_scripts.filter(|slow| *slow > 0) {
        let message = format!("{slow} scripts over 10 ms among the last entries of SLOWLOG");
        found.push(Finding::new("slowlog", message));
    }
    let in_cluster = facts.text("cluster_enabled") == "1";
    for (queue, jobs) in facts.queues.iter().filter(|(_, jobs)| in_cluster && *jobs > HUGE) {
        let finding = Finding::new("huge_queue", format!("{jobs} jobs in one slot"));
        found.push(Finding { queue: Some(queue.clone()), ..finding });
    }
}

fn user(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(lacking) = &facts.lacking else {
        let message = format!("what user {} may run is not told", facts.user);
        found.push(Finding::new("acl_unknown", message));
        return;
    };
    // The doctor is an operator; what else the user is not there for is no fault.
    if lacking.iter().any(|(role, _)| *role == Role::Operator) {
        let of = |(role, lack): &(Role, Vec<String>)| format!("as {role} {}", lack.join(" "));
        let lack: Vec<_> = lacking.iter().map(of).collect();
        let message = format!("user {} may not run {}", facts.user, lack.join("; "));
        found.push(Finding::new("acl", message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking(role: Role) -> Option<Vec<(Role, Vec<String>)>> {
        Some(vec![(role, vec!["EVALSHA".to_owned()])])
    }

    #[test]
    fn an_operator_need_not_be_able_to_work() {
        assert!(checks(&Facts { lacking: lacking(Role::Worker), ..healthy() }).is_empty());
    }

    fn healthy() -> Facts {
        let info = [
            ("redis_version", "8.2.2"),
            ("maxmemory", "1000"),
            ("maxmemory_policy", "noeviction"),
            ("used_memory", "800"),
            ("aof_enabled", "1"),
            ("aof_last_write_status", "ok"),
            ("rdb_last_bgsave_status", "ok"),
            ("role", "master"),
            ("connected_slaves", "1"),
            ("connected_clients", "80"),
        ];
        let config = [("maxclients", "100"), ("min-replicas-to-write", "1")];
        let owned = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
        Facts {
            info: info.map(owned).into(),
            config: config.map(owned).into(),
            lacking: Some(Vec::new()),
            slow_scripts: Some(0),
            ..Facts::default()
        }
    }

    fn checks(facts: &Facts) -> Vec<&'static str> {
        judge(facts).into_iter().map(|finding| finding.check).collect()
    }

    #[test]
    fn a_healthy_server_gives_nothing_to_tell() {
        assert!(checks(&healthy()).is_empty(), "{:?}", judge(&healthy()));
    }

    #[test]
    fn each_fact_has_its_finding() {
        for (name, value, expected) in [
            ("redis_version", "6.2.21", "version"),
            ("redis_version", "7.0.15", "cve"),
            ("redis_version", "7.2.10", "cve"),
            ("redis_version", "7.4.5", "cve"),
            ("redis_version", "8.2.1", "cve"),
            ("valkey_version", "8.1.3", "cve"),
            ("maxmemory_policy", "allkeys-lru", "eviction"),
            ("maxmemory_policy", "volatile-ttl", "eviction_volatile"),
            ("used_memory", "801", "memory"),
            ("maxmemory", "0", "no_maxmemory"),
            ("aof_enabled", "0", "no_persistence"),
            ("aof_last_write_status", "err", "aof_write"),
            ("rdb_last_bgsave_status", "err", "snapshot"),
            ("aof_delayed_fsync", "3", "fsync"),
            ("role", "slave", "replica"),
            ("connected_slaves", "0", "no_replica"),
            ("connected_clients", "81", "clients"),
        ] {
            let mut facts = healthy();
            facts.info.insert(name.to_owned(), value.to_owned());
            assert_eq!(checks(&facts), [expected], "{name} {value}");
        }
        for (facts, expected) in [
            (
                Facts { untold: vec![("info_refused", "why".to_owned())], ..healthy() },
                "info_refused",
            ),
            (Facts { clock_ahead: -5_001, ..healthy() }, "clock"),
            (Facts { ping: 5_001, ..healthy() }, "latency"),
            (Facts { slow_scripts: Some(1), ..healthy() }, "slowlog"),
            (Facts { lacking: None, ..healthy() }, "acl_unknown"),
            (Facts { lacking: lacking(Role::Operator), ..healthy() }, "acl"),
        ] {
            assert_eq!(checks(&facts), [expected]);
        }
    }

    #[test]
    fn only_a_cluster_minds_a_huge_queue() {
        let mut facts = Facts { queues: vec![("q".to_owned(), HUGE + 1)], ..healthy() };
        assert!(checks(&facts).is_empty());
        facts.info.insert("cluster_enabled".to_owned(), "1".to_owned());
        assert_eq!(checks(&facts), ["huge_queue"]);
    }

    #[test]
    fn a_release_is_safe_from_its_line_s_patch_on() {
        for (name, value) in [
            ("redis_version", "7.2.11"),
            ("redis_version", "7.4.6"),
            ("redis_version", "8.4.0"),
            ("valkey_version", "8.1.4"),
            ("valkey_version", "9.0.0"),
        ] {
            let mut facts = healthy();
            facts.info.insert(name.to_owned(), value.to_owned());
            assert!(checks(&facts).is_empty(), "{name} {value}");
        }
    }
}
