//! What is told of the server.

use crate::{
    program::{Program, Ran},
    support::Server,
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
