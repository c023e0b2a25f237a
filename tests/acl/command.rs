//! `sprag acl`.

use crate::{
    program::{Program, command, run},
    user::rules,
};
use serde_json::json;
use sprag::store::Role;

fn acl(args: &[&str]) -> String {
    let ran = run(command().arg("acl").args(args));
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout.trim_end().to_owned()
}

#[test]
fn it_prints_what_a_role_needs_without_a_server() {
    for role in Role::ALL {
        let start = format!("ACL SETUSER sprag-{role} resetkeys resetchannels -@all ");
        let line = acl(&[role.as_str()]);
        assert_eq!(line.strip_prefix(&start), Some(&*rules(role).join(" ")), "{line}");
    }
}

#[test]
fn roles_are_put_together_each_rule_once() {
    let line = acl(&["worker", "producer", "worker", "--user", "app"]);
    let mut words: Vec<_> = line.split(' ').collect();
    assert_eq!(&words[..3], ["ACL", "SETUSER", "app"]);
    for rule in [Role::Producer, Role::Worker].iter().flat_map(|role| rules(*role)) {
        assert!(words.contains(&&*rule), "{rule}");
    }
    let all = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), all, "{line}");
}

#[test]
fn it_is_for_the_namespace_that_is_set() {
    let line = acl(&["producer", "--namespace", "shop"]);
    assert!(line.contains("~shop:{*}:*") && !line.contains("~sprag"), "{line}");
    let ran = run(command().env("SPRAG_NAMESPACE", "env").args(["--json", "acl", "operator"]));
    let object = &ran.objects()[0];
    assert_eq!((&object["namespace"], &object["roles"]), (&json!("env"), &json!(["operator"])));
    assert_eq!(object["user"], "sprag-operator");
    assert_eq!(object["rules"][0], "resetkeys", "{object}");
}

#[test]
fn what_is_no_role_or_no_name_is_exit_2() {
    for args in [&["acl"][..], &["acl", "admin"], &["acl", "worker", "--user", "a b"]] {
        assert_eq!(run(command().args(args)).code, 2, "{args:?}");
    }
}

#[tokio::test]
async fn its_line_makes_a_user_who_can_work_and_keeps_his_password() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut user = redis::cmd("ACL");
    user.arg(&["SETUSER", "app", "on", ">p", "+@all", "~*"]);
    user.query_async::<()>(&mut connection).await.expect("made");
    let line = acl(&["producer", "--user", "app"]);
    let mut words = line.split(' ');
    let mut user = redis::cmd(words.next().expect("ACL"));
    user.arg(words.collect::<Vec<_>>()).query_async::<()>(&mut connection).await.expect("set");
    let url = sprag.server.url() + "?user=app&pass=p";
    assert_eq!(sprag.run(&["--url", &url, "enqueue", "q", "k", "1"]).code, 0);
    let ran = sprag.run(&["--json", "--url", &url, "queue", "pause", "q"]);
    assert_eq!(ran.error()["error"], "backend", "{ran:?}");
    assert!(ran.stderr.contains("sprag acl operator"), "{ran:?}");
}
