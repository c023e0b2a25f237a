//! A producer and a worker in one shell script, of nothing but the command.

use crate::program::{Program, SPRAG, run};
use serde_json::json;
use std::process::Command;

const SCRIPT: &str = r#"
set -eu
sprag() { "$SPRAG" --json "$@"; }
# The value of a field of a flat object.
field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }

for n in 1 2 3; do
    sprag enqueue sums sum "{\"n\":$n}" --unique "sum-$n" --retention 1h >/dev/null
done
status=0
sprag enqueue sums sum '{"n":1}' --unique sum-1 2>/dev/null || status=$?
[ "$status" -eq 4 ] || { echo "a duplicate is exit 4, not $status"; exit 1; }

while :; do
    job=$(sprag claim sums --worker "sh-$$" --lease 5s)
    [ -n "$job" ] || break
    id=$(echo "$job" | field id)
    fence=$(echo "$job" | field fence)
    n=$(echo "$job" | field n)
    sprag extend sums "$id" --fence "$fence" --lease 5s >/dev/null
    sprag complete sums "$id" --fence "$fence" --result "$((n * n))" >/dev/null
    echo "$id $(sprag job show sums "$id" | field result)"
done
"#;

#[tokio::test]
async fn a_shell_script_is_a_producer_and_a_worker() {
    let sprag = Program::start().await;
    let mut script = Command::new("sh");
    script.args(["-c", SCRIPT]).env("SPRAG", SPRAG).env("SPRAG_REDIS_URL", sprag.server.url());
    let ran = run(&mut script);
    assert_eq!(ran.code, 0, "{ran:?}");
    let results: Vec<_> = ran.stdout.lines().map(|line| line.split(' ').next_back()).collect();
    assert_eq!(results, [Some("1"), Some("4"), Some("9")], "{ran:?}");
    let queue = sprag.object(&["queue", "show", "sums"]);
    assert_eq!((&queue["completed"], &queue["unfinished"]), (&json!(3), &json!(0)));
}
