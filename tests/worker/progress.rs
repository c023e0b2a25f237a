//! Progress: said often, sent seldom.

use crate::{
    bench::{Bench, Log, Working, ms, worker},
    support::PATIENCE,
};
use sprag::{Context, worker::Progress};
use std::time::Instant;

/// What the store holds of `a`, past its scripts.
async fn kept(bench: &Bench) -> Option<Progress> {
    let text: Option<String> = bench.run(&["HGET", "sprag:{default}:progress", "a"]).await;
    text.map(|text| serde_json::from_str(&text).expect("JSON"))
}

#[tokio::test]
async fn a_thousand_words_are_a_handful_of_calls_and_the_last_one_is_shown() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, context: Context| async move {
        for done in 1..=1_000 {
            context.progress(done, 1_000, format!("step {done}"));
            tokio::task::yield_now().await;
        }
        context.cancelled().await;
        Ok(())
    };
    let working = Working::start(worker(&bench.client, &log, handler).grace(ms(1)));
    bench.until_blocked(1).await;
    let calls = bench.sent("evalsha").await;
    bench.enqueue(&["a"]).await;
    let started = Instant::now();
    while kept(&bench).await.is_none_or(|progress| progress.current < 1_000) {
        assert!(started.elapsed() < PATIENCE, "the last word is never kept");
        tokio::time::sleep(ms(10)).await;
    }
    // Those of its enqueue, its claim and of sweeps among them.
    let calls = bench.sent("evalsha").await - calls;
    assert!(calls < 30 + started.elapsed().as_secs() * 4, "{calls} calls");
    let shown = bench.show("a").await.progress.expect("shown");
    let shown: Progress = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((shown.total, shown.message.as_str()), (1_000, "step 1000"));
    working.stop().await;
}
