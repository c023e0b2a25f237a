//! The program by all schemes.

use crate::support::{Cluster, PATIENCE, Sentinels, TlsServer};
use std::process::{Output, Stdio};
use tokio::process::Command;

const SECRET: &str = "s3cr3t";

/// With nothing of the tests' own environment.
fn sprag(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    for name in ["SPRAG_REDIS_URL", "REDIS_URL", "SPRAG_NAMESPACE", "RUST_LOG", "SPRAG_CONFIG"] {
        command.env_remove(name);
    }
    for name in ["SPRAG_REDIS_PASSWORD", "SPRAG_REDIS_PASSWORD_FILE"] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/no/such/folder").args(["--json", "--url", url]).args(args);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A demo alone takes twenty seconds.
async fn run(command: &mut Command) -> Output {
    tokio::time::timeout(4 * PATIENCE, command.output()).await.expect("in time").expect("it runs")
}

/// It must succeed; what it printed.
async fn good(url: &str, args: &[&str]) -> String {
    let ran = run(&mut sprag(url, args)).await;
    assert!(ran.status.success(), "{url} {args:?}: {ran:?}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

fn field(json: &str, name: &str) -> String {
    let line = json.lines().next().expect("a line");
    let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let value = &object[name];
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A job's life, by hand and by a worker, and a look at all.
async fn life(url: &str) {
    good(url, &["enqueue", "q", "k", "1", "--id", "a"]).await;
    let claimed = good(url, &["claim", "q", "--worker", "w"]).await;
    assert_eq!(field(&claimed, "id"), "a", "{claimed}");
    good(url, &["complete", "q", "a", "--fence", &field(&claimed, "fence")]).await;
    good(url, &["enqueue", "q", "k", "2", "--id", "b", "--retention", "1h"]).await;
    good(url, &["work", "q", "--until-empty", "--exec", "true"]).await;
    assert_eq!(field(&good(url, &["job", "show", "q", "b"]).await, "state"), "completed");
    assert_eq!(field(&good(url, &["queue", "list"]).await, "queue"), "q");
    let doctor = run(&mut sprag(url, &["doctor"])).await;
    assert!(matches!(doctor.status.code(), Some(0 | 1)) && !doctor.stdout.is_empty(), "{doctor:?}");
}

/// One that needs a server of its own to look at says so, and shows no password.
async fn refused(url: &str, command: &str) {
    let with = url.replacen("://", &format!("://:{SECRET}@"), 1);
    let ran = run(&mut sprag(&with, &[command])).await;
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    let scheme = url.split("://").next().expect("a scheme");
    for words in [scheme, command, "one server", "must be redis"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn by_tls() {
    let tls = TlsServer::setup().asks_clients().with(|setup| setup.password(SECRET)).start().await;
    let url = tls.url().replace("rediss://", &format!("rediss://:{SECRET}@"));
    life(&url).await;
    let bench = good(&url, &["bench", "--jobs", "200", "--concurrency", "4"]).await;
    assert!(!bench.contains(SECRET));
    let demo = run(&mut sprag(&url, &["demo"])).await;
    assert!(demo.status.success(), "{demo:?}");
    // The password apart from the URL.
    let apart =
        run(sprag(&tls.url(), &["queue", "list"]).env("SPRAG_REDIS_PASSWORD", SECRET)).await;
    assert!(apart.status.success(), "{apart:?}");
    // Without its certificate it is told what is missing.
    let ca = Some(&*tls.certificates.ca);
    let ran = run(&mut sprag(&tls.url_of("localhost", ca, None), &["queue", "list"])).await;
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("TLS") && said.contains("cert="), "{said}");
    let mut keys = tls.server.connection().await;
    let left: Vec<String> =
        redis::cmd("KEYS").arg("sprag-*").query_async(&mut keys).await.expect("keys");
    assert_eq!(left, [""; 0], "bench and demo clean up");
}

#[tokio::test]
async fn by_sentinels() {
    let sentinels = Sentinels::setup().server_password(SECRET).start().await;
    let url = sentinels.url();
    life(&url).await;
    // Several hosts, and the password apart.
    let (scheme, rest) = url.split_once("://").expect("a scheme");
    let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
    let without = format!("{scheme}://{hosts}");
    assert!(hosts.contains(','), "{hosts}");
    let ran = run(sprag(&without, &["queue", "list"]).env("SPRAG_REDIS_PASSWORD", SECRET)).await;
    assert!(ran.status.success(), "{ran:?}");
    for command in ["bench", "demo"] {
        refused(&without, command).await;
    }
}

#[tokio::test]
async fn by_cluster() {
    let cluster = Cluster::start(3, 0).await;
    life(&cluster.url()).await;
    for command in ["bench", "demo"] {
        refused(&cluster.url(), command).await;
    }
}

#[tokio::test]
async fn a_file_has_the_schemes_too_and_shows_no_password() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("sprag.toml");
    let path = file.display().to_string();
    for (url, told) in [
        (format!("redis+cluster://:{SECRET}@127.0.0.1:1,127.0.0.1:2"), 9),
        (format!("redis+sentinel://:{SECRET}@127.0.0.1:1,127.0.0.1:2/m"), 9),
        (format!("redis+sentinel://:{SECRET}@127.0.0.1:1"), 2),
        (format!("rediss://:{SECRET}@127.0.0.1:1?ca=/no/such"), 2),
        (format!("redis+cluster://:{SECRET}@127.0.0.1:1/5"), 2),
    ] {
        std::fs::write(&file, format!("url = \"{url}\"\n")).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
        command.env_clear().args(["--json", "--config", &path, "queue", "list"]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ran = run(&mut command).await;
        let said = format!("{ran:?}");
        assert_eq!(ran.status.code(), Some(told), "{said}");
        assert!(!said.contains(SECRET) && !said.contains("panicked"), "{said}");
    }
}
