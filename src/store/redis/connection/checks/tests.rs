use super::*;
use std::{sync::atomic::AtomicU64, time::Duration};

const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n\
                    aof_enabled:1\r\ncluster_enabled:0\r\n";

fn settings(allow_eviction: bool, cluster: bool) -> Settings {
    Settings {
        response_timeout: Duration::from_secs(1),
        allow_eviction,
        cluster,
        pool_size: 1,
        pool_wait: Duration::from_secs(1),
        made: AtomicU64::new(0),
    }
}

fn with(field: &str, value: &str) -> Facts {
    let lines = GOOD.lines().filter(|line| !line.starts_with(&format!("{field}:")));
    Facts::read(&lines.chain([&*format!("{field}:{value}")]).collect::<Vec<_>>().join("\r\n"))
}

#[test]
fn a_good_server_is_neither_refused_nor_warned_of() {
    let facts = Facts::read(GOOD);
    assert_eq!(facts.refusal(&settings(false, false)), None);
    assert_eq!(facts.warnings(), Vec::<String>::new());
}

#[test]
fn a_server_is_refused_with_what_to_do() {
    let refused =
        |facts: Facts, cluster| facts.refusal(&settings(false, cluster)).unwrap_or_default();
    for version in ["6.2.14", "5.0.7", "2.8.24"] {
        let text = refused(with("redis_version", version), false);
        assert!(
            text.contains(version) && text.contains("Redis 7.0") && text.contains("upgrade"),
            "{text}"
        );
    }
    for version in ["7.0.0", "7.4.1", "8.2.1", "255.255.255", "nonsense"] {
        assert_eq!(refused(with("redis_version", version), false), "", "{version}");
    }
    // Valkey says that it is Redis 7.2.4, and tells its own version besides.
    for (version, is_refused) in [("7.2.5", true), ("8.0.0", false), ("9.0.1", false)] {
        let text = refused(with("valkey_version", version), false);
        assert_eq!(
            text.contains("Valkey 8") && text.contains("upgrade"),
            is_refused,
            "{version}: {text}"
        );
    }
    let text = refused(with("cluster_enabled", "1"), false);
    assert!(text.contains("use redis+cluster://"), "{text}");
    let text = refused(Facts::read(GOOD), true);
    assert!(text.contains("use redis://"), "{text}");
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let text = refused(with("maxmemory_policy", policy), false);
        assert!(
            text.contains(policy) && text.contains("noeviction") && text.contains("allow_eviction"),
            "{text}"
        );
    }
    for policy in ["volatile-lru", "volatile-ttl", "noeviction"] {
        assert_eq!(refused(with("maxmemory_policy", policy), false), "", "{policy}");
    }
}

#[test]
fn what_may_be_meant_is_warned_of() {
    let evicts = with("maxmemory_policy", "allkeys-lru");
    assert_eq!(evicts.refusal(&settings(true, false)), None);
    assert!(evicts.warnings()[0].contains("whole queues are deleted"), "{:?}", evicts.warnings());
    assert!(with("aof_enabled", "0").warnings()[0].contains("set appendonly yes"));
    let silent = Facts::default();
    assert_eq!(silent.refusal(&settings(false, false)), None);
    let text = silent.warnings().join("");
    assert!(text.contains("could not verify its version, its eviction policy"), "{text}");
}
