//! `deploy/` can be read by those it is for, and its numbers agree with the library's.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

const UNITS: [&str; 2] = ["sprag-work@.service", "app-worker.service"];
/// What a worker needs after its grace to end, and an orchestrator to see it, s.
const SPARE: u64 = 3;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The number that stands behind these words.
fn number(name: &str, words: &str) -> u64 {
    let text = read(name);
    let rest = text.split(words).nth(1).unwrap_or_else(|| panic!("{name} has {words:?}"));
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().unwrap_or_else(|_| panic!("{name}: a number behind {words:?}"))
}

/// The library's grace, and what a handler has after it, s.
fn worker_ends_within() -> u64 {
    let builder = "src/worker/builder.rs";
    number(builder, " grace: Duration::from_secs(")
        + number(builder, "cancel_grace: Duration::from_secs(")
}

#[test]
fn a_worker_has_its_whole_grace_before_it_is_killed() {
    let least = worker_ends_within() + SPARE;
    for (file, words) in [
        ("deploy/systemd/app-worker.service", "TimeoutStopSec="),
        ("deploy/kubernetes/worker.yaml", "terminationGracePeriodSeconds: "),
    ] {
        let given = number(file, words);
        assert!((least..least + 15).contains(&given), "{file}: {words}{given}, {least} at least");
    }
}

#[test]
fn a_worker_of_commands_has_its_whole_grace_before_it_is_killed() {
    let (unit, work) = ("deploy/systemd/sprag-work@.service", "src/cli/work/mod.rs");
    let (grace, kill_after) = (number(unit, "--grace "), number(unit, "--kill-after "));
    let least =
        grace + kill_after + number(work, "AFTER_KILL: Duration = Duration::from_secs(") + SPARE;
    let given = number(unit, "TimeoutStopSec=");
    assert!((least..least + 15).contains(&given), "{unit}: {given}, {least} at least");
    let page = "deploy/kubernetes/README.md";
    assert_eq!(number(page, "2 s + some to spare: "), given, "{page} says the same");
    let worker = "deploy/kubernetes/worker.yaml";
    assert_eq!(number(worker, "with a terminationGracePeriodSeconds of "), given);
}

#[test]
fn redis_keeps_what_it_is_given() {
    let compose = read("docker-compose.yml").replace(['-', '"', '\n', ' '], "");
    for words in ["appendonlyyes", "appendfsynceverysec", "maxmemorypolicynoeviction"] {
        assert!(compose.contains(words), "docker-compose.yml: {words}");
    }
    let redis = read("deploy/kubernetes/redis.yaml");
    for words in ["appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"] {
        assert!(redis.contains(words), "redis.yaml: {words}");
    }
    let (file, gib) = (
        "deploy/kubernetes/redis.yaml",
        number("deploy/kubernetes/redis.yaml", "limits:\n              memory: "),
    );
    assert!(2 * number(file, "maxmemory ") <= gib, "pages exist twice while the file is rewritten");
}

/// The output, or that there is no such program.
fn tried(mut command: Command, what: &str) -> Option<Output> {
    let output = command.output().ok();
    if output.is_none() {
        eprintln!("!!! SKIPPED: no {:?}; {what} is not checked", command.get_program());
    }
    output
}

#[test]
fn systemd_understands_the_units() {
    let mut version = Command::new("systemd-analyze");
    version.arg("--version");
    if tried(version, "deploy/systemd").is_none() {
        return;
    }
    for unit in UNITS {
        let dir = tempfile::tempdir().expect("a directory");
        let text = read(&format!("deploy/systemd/{unit}"));
        let installed: Vec<_> =
            text.lines().filter(|line| line.starts_with("ExecStart=/usr/local/bin/")).collect();
        assert_eq!(installed.len(), 1, "{unit}");
        // The program need not be installed here.
        let program = installed[0].split([' ', '=']).nth(1).expect("a path");
        fs::write(dir.path().join(unit), text.replace(program, "/bin/true")).expect("written");
        let mut verify = Command::new("systemd-analyze");
        let instance = dir.path().join(unit.replace('@', "@mail"));
        verify.args(["verify", "--man=no"]).arg(instance);
        let verified = verify.output().expect("it ran before");
        let said = String::from_utf8_lossy(&verified.stderr);
        // What it says of the machine's own units is not about ours.
        let ours: Vec<_> = said.lines().filter(|line| line.contains(&unit[..9])).collect();
        assert!(verified.status.success() && ours.is_empty(), "{unit}: {said}");
    }
}

const KINDS: &str = r#"
import sys, yaml
for file in sys.argv[1:]:
    for document in yaml.safe_load_all(open(file)):
        print(document["kind"], document["metadata"]["name"])
        template = document.get("spec", {}).get("template", {})
        for container in template.get("spec", {}).get("containers", []):
            assert container["resources"]["limits"]["memory"], container
"#;

#[test]
fn the_manifests_are_yaml() {
    let mut yaml = Command::new("python3");
    yaml.args(["-c", "import yaml"]);
    if !tried(yaml, "deploy/kubernetes").is_some_and(|had| had.status.success()) {
        eprintln!("!!! SKIPPED: no PyYAML; deploy/kubernetes is not checked");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
    let mut kinds = Command::new("python3");
    kinds.args(["-c", KINDS]).args(["worker.yaml", "redis.yaml"].map(|file| root.join(file)));
    let kinds = kinds.output().expect("it ran before");
    let said = String::from_utf8_lossy(&kinds.stderr);
    assert!(kinds.status.success(), "{said}");
    let found = String::from_utf8_lossy(&kinds.stdout).into_owned();
    let all = ["Deployment app-worker", "ConfigMap redis", "Service redis", "StatefulSet redis"];
    assert_eq!(found.lines().collect::<Vec<_>>(), all);
}
