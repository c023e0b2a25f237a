//! What is told of the server.

use crate::{
    program::{Program, Ran, command, run},
    support::{Cluster, Server},
};
use std::collections::BTreeSet;

fn checks(ran: &Ran) -> BTreeSet<String> {
    ran.objects().iter().map(|one| one["check"].as_str().expect("a word").to_owned()).collect()
}

async fn with_args(args: &[&str]) -> Program {
    Program { server: Server::with_args(args).await }
}

#[tokio::test]
async fn a_server_that_deletes_queues_fails() {
    let sprag = with_args(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]).await;
    let ran = sprag.run(&["--json", "doctor"]);
    let told = checks(&ran);
    assert!(ran.code == 1 && told.contains("eviction"), "{ran:?}");
    assert!(!told.contains("unknown") && !told.contains("acl"), "{ran:?}");
    for finding in ran.objects() {
        let fields: BTreeSet<_> = finding.as_object().expect("object").keys().cloned().collect();
        let all = ["severity", "check", "queue", "id", "message", "means", "do", "repaired"];
        assert_eq!(fields, all.map(str::to_owned).into(), "{finding}");
    }
}

#[tokio::test]
async fn advice_on_the_server_is_no_failure() {
    let sprag = Program::start().await;
    let ran = sprag.run(&["--json", "doctor"]);
    assert!(ran.code == 0 && checks(&ran).contains("no_persistence"), "{ran:?}");
    let ran = sprag.run(&["doctor"]);
    assert!(ran.code == 0 && ran.stdout.contains("a restart of the server loses every job"));
    assert!(ran.stderr.contains("all is well: 0 queues, 0 jobs looked at"), "{ran:?}");
}

#[tokio::test]
async fn a_user_that_may_not_ask_is_told_what_was_not_looked_at() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("u").arg("on").arg(">p").arg("~*").arg("&*").arg("+@all");
    user.arg("-info").arg("-config").arg("-slowlog");
    user.query_async::<()>(&mut connection).await.expect("set");
    let url = sprag.server.url() + "?user=u&pass=p";
    let ran = sprag.run(&["--json", "--url", &url, "doctor"]);
    let told = checks(&ran);
    for check in ["info_refused", "config_refused", "slowlog_refused"] {
        assert!(told.contains(check), "{check}: {ran:?}");
    }
    let ran = sprag.run(&["--url", &url, "doctor"]);
    assert!(ran.stdout.contains("ACL SETUSER: +info") && !ran.stderr.contains("all is well"));
}

#[tokio::test]
async fn a_user_that_may_too_little_is_told_what_is_missing() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("u").arg("on").arg(">p").arg("~sprag:*").arg("&sprag:*").arg("+@all");
    user.arg("-zmscore");
    user.query_async::<()>(&mut connection).await.expect("set");
    let url = sprag.server.url() + "?user=u&pass=p";
    let ran = sprag.run(&["--json", "--url", &url, "doctor"]);
    let acl: Vec<_> = ran.objects().into_iter().filter(|one| one["check"] == "acl").collect();
    assert_eq!(
        acl[0]["message"], "user u may not run as worker ZMSCORE; as operator ZMSCORE",
        "{ran:?}"
    );
}

/// Each master of a cluster, by its address; and the queues of all, also one that is not on the list.
#[tokio::test]
async fn a_cluster_is_looked_at_master_by_master() {
    let cluster = Cluster::start(3, 0).await;
    let url = cluster.url();
    let sprag = |args: &[&str]| run(command().args(["--url", &url]).args(args));
    for queue in ["a", "b", "c", "d"] {
        let ran = sprag(&["enqueue", queue, "kind", "1"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let list = cluster.node_of_key("sprag:queues").await;
    cluster.ask::<()>(list, &["DEL", "sprag:queues"]).await;
    let ran = sprag(&["--json", "doctor"]);
    let findings = ran.objects();
    let of = |check: &str, field: &str| {
        let these = findings.iter().filter(|finding| finding["check"] == check);
        these
            .map(|finding| finding[field].as_str().unwrap_or("-").to_owned())
            .collect::<BTreeSet<_>>()
    };
    let ports: BTreeSet<_> =
        cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.server.port())).collect();
    assert_eq!(of("no_persistence", "id"), ports, "{ran:?}");
    assert_eq!(of("unlisted", "queue"), ["a", "b", "c", "d"].map(str::to_owned).into(), "{ran:?}");
    let ran = sprag(&["doctor"]);
    assert!(ports.iter().all(|port| ran.stdout.contains(port)), "{ran:?}");
}

/// A node that is away hides neither the queues of the others nor what they say of themselves.
#[tokio::test]
async fn of_a_cluster_with_a_node_that_is_away_the_others_are_looked_at() {
    let setup = Cluster::setup(3, 0).args(["--cluster-require-full-coverage", "no"]);
    let mut cluster = setup.start().await;
    let list = cluster.node_of_key("sprag:queues").await;
    let away = (list + 1) % 3;
    let url = cluster.url();
    let sprag = |args: &[&str]| run(command().args(["--url", &url]).args(args));
    let (mut lost, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for queue in (0..8).map(|i| format!("q{i}")) {
        let ran = sprag(&["enqueue", &queue, "kind", "1"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let node = cluster.node_of_key(&format!("sprag:{{{queue}}}:meta")).await;
        let place = if node == away { &mut lost } else { &mut seen };
        place.insert(queue);
    }
    assert!(!lost.is_empty() && !seen.is_empty(), "{lost:?} {seen:?}");
    cluster.kill(away);
    let ran = sprag(&["--json", "doctor"]);
    let findings = ran.objects();
    let of = |check: &str, field: &str| -> BTreeSet<_> {
        let these = findings.iter().filter(|finding| finding["check"] == check);
        these.map(|finding| finding[field].as_str().unwrap_or("-").to_owned()).collect()
    };
    let port = |node: usize| format!("127.0.0.1:{}", cluster.nodes[node].server.port());
    assert_eq!(of("failed", "queue"), lost, "{ran:?}");
    assert_eq!(of("node_away", "id"), [port(away)].into(), "{ran:?}");
    let others: BTreeSet<_> = (0..3).filter(|node| *node != away).map(port).collect();
    assert_eq!(of("no_persistence", "id"), others, "{ran:?}");
    assert_eq!(ran.code, 1);
    let name = seen.first().expect("some");
    let ran = sprag(&["--quiet", "doctor", name]);
    assert!(ran.stdout.contains("node_away") && !ran.stdout.contains("failed"), "{ran:?}");
    for noun in ["queue", "quarantine"] {
        let ran = sprag(&["--json", noun, "list"]);
        let told: BTreeSet<_> = ran.errors().iter().map(|one| text_of(one, "queue")).collect();
        assert_eq!((ran.code, told), (9, lost.clone()), "{ran:?}");
        if noun == "queue" {
            let shown: BTreeSet<_> =
                ran.objects().iter().map(|one| text_of(one, "queue")).collect();
            assert_eq!(shown, seen, "{ran:?}");
        }
    }
}

fn text_of(object: &serde_json::Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

/// A user whose rules are for one queue only.
#[tokio::test]
async fn rights_for_one_queue_are_judged_by_that_queue_and_what_may_not_be_seen_is_told() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "mail", "kind", "1"]);
    sprag.object(&["enqueue", "other", "kind", "1"]);
    let user = async |name: &str, keys: &[&str]| {
        let mut user = redis::cmd("ACL");
        user.arg(&["SETUSER", name, "on", ">p", "~sprag:{mail}:*", "&sprag:*", "+@all"]).arg(keys);
        user.query_async::<()>(&mut sprag.server.connection().await).await.expect("set");
        format!("{}?user={name}&pass=p", sprag.server.url())
    };
    let url = user("u", &["~sprag:queues", "~sprag:workers", "~sprag:schema"]).await;
    let ran = sprag.run(&["--json", "--url", &url, "doctor", "mail"]);
    assert!(
        checks(&ran).is_disjoint(&["acl", "failed", "lists"].map(str::to_owned).into()),
        "{ran:?}"
    );
    let ran = sprag.run(&["--json", "--url", &url, "doctor"]);
    let failed: Vec<_> = ran.objects().into_iter().filter(|one| one["check"] == "failed").collect();
    assert!(failed.len() == 1 && failed[0]["queue"] == "other", "{ran:?}");

    let url = user("v", &[]).await;
    let ran = sprag.run(&["--json", "--url", &url, "doctor"]);
    assert!(checks(&ran).is_superset(&["acl", "lists"].map(str::to_owned).into()), "{ran:?}");
    let ran = sprag.run(&["--json", "--url", &url, "queue", "list"]);
    let message = text_of(&ran.error(), "message");
    let hint = "(user v; `sprag acl operator` prints";
    assert!(message.contains("NOPERM") && message.contains(hint), "{ran:?}");
}
