//! A producer and a worker in one shell script, of nothing but the command.

use crate::program::{Program, SPRAG, run};
use serde_json::json;
use std::process::Command;

/// Producers and workers at once, with all that may happen to a job: a duplicate, a failure that is
/// tried again, a payload that cannot be used, a delay, a worker that dies, one that comes too late.
const SCRIPT: &str = r#"
set -eu
sprag() { "$SPRAG" --json "$@"; }
# The value of a field of a flat object.
field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }
# Fails unless a command ends with this code.
ends_with() {
    code=$1 status=0
    shift
    "$@" >/dev/null 2>&1 || status=$?
    [ "$status" -eq "$code" ] || { echo "exit $status, not $code: $*" >&2; exit 1; }
}

produce() {
    for n in 1 2 3 4 5 6; do
        sprag enqueue sums sum "{\"n\":$n}" --unique "sum-$n" --retention 1h >/dev/null
    done
    sprag enqueue sums sum '{"n":7}' --delay 200ms --retention 1h >/dev/null
    sprag enqueue sums sum '{"n":"many"}' --id unusable >/dev/null
}

# Takes a job if there is one: id, fence, attempt and n are its own then.
take() {
    job=$(sprag claim sums --worker "$1" --lease "$2")
    [ -n "$job" ] || return 1
    id=$(echo "$job" | field id) fence=$(echo "$job" | field fence)
    attempt=$(echo "$job" | field attempt) n=$(echo "$job" | field n)
}

work() {
    while :; do
        sprag sweep sums >/dev/null
        if ! take "$1" 5s; then
            [ "$(sprag queue show sums | field unfinished)" -gt 0 ] || return 0
            sleep 0.05
            continue
        fi
        sprag extend sums "$id" --fence "$fence" --lease 10s >/dev/null
        case $n$attempt in
            many*) sprag archive sums "$id" --fence "$fence" --error "no number" --undecodable >/dev/null ;;
            30) sprag retry sums "$id" --fence "$fence" --error "three is shy" --delay 100ms >/dev/null ;;
            *) sprag complete sums "$id" --fence "$fence" --result "$((n * n))" >/dev/null
                echo "$n $attempt $(sprag job show sums "$id" | field result)" ;;
        esac
    done
}

produce
# A duplicate is told, and is a success for whoever only wants it done.
ends_with 4 sprag enqueue sums sum '{"n":1}' --unique sum-1
ends_with 0 sprag enqueue sums sum '{"n":1}' --unique sum-1 --join

# A worker that dies: it says nothing more, and its lease ends. What it says too late is refused, as
# is what nobody may say of a job that is held.
take dead 100ms
ends_with 8 sprag complete sums "$id" --fence 1
sleep 0.2
sprag sweep sums >/dev/null
ends_with 8 sprag extend sums "$id" --fence "$fence"
ends_with 8 sprag complete sums "$id" --fence "$fence"

work sh-1 & first=$!
work sh-2 & second=$!
wait "$first"
wait "$second"
"#;

#[tokio::test]
async fn a_shell_script_is_a_producer_and_a_worker() {
    let sprag = Program::start().await;
    let mut script = Command::new("sh");
    script.args(["-c", SCRIPT]).env("SPRAG", SPRAG).env("SPRAG_REDIS_URL", sprag.server.url());
    let ran = run(&mut script);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let mut done: Vec<_> = ran.stdout.lines().collect();
    done.sort_unstable();
    // Each once, the third at its second attempt; a worker's death is no attempt.
    assert_eq!(
        done,
        ["1 0 1", "2 0 4", "3 1 9", "4 0 16", "5 0 25", "6 0 36", "7 0 49"],
        "{ran:?}"
    );
    let queue = sprag.object(&["queue", "show", "sums"]);
    let counts = ["completed", "archived", "unfinished"].map(|name| queue[name].clone());
    assert_eq!(counts, [json!(7), json!(1), json!(0)]);
    let unusable = sprag.object(&["job", "show", "sums", "unusable"]);
    assert!(unusable.to_string().contains("undecodable"), "{unusable}");
}
