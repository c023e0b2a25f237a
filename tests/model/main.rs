//! The model: random calls of all verbs by several clients, on both stores at once. Every answer
//! and all that can be seen afterwards is equal, and Redis' keys are sound.
//!
//! * `jobs` and `steps` say what may be done, over so few names that they collide all the time: all
//!   that can be done, and in a second run only what moves jobs about;
//! * `pair` holds the two stores and does a step on both; `look` compares what can be seen;
//! * `elsewhere` does the same on other kinds of servers, for a shorter time;
//! * `found` has what went wrong once, by name.
//!
//! `SPRAG_MODEL_SEQUENCES` is the number of sequences, `SPRAG_MODEL_SEED` where the random numbers
//! begin: a failure names it, and shows the shortest sequence that fails.

#[path = "../support/mod.rs"]
mod support;

mod elsewhere;
mod found;
mod jobs;
mod look;
mod pair;
mod steps;

use pair::Rig;
use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

/// Takes about a minute in the dev profile.
const SEQUENCES: u32 = 1_500;
/// In CI the sequences are the same at every run: a red one is the change's doing. Everybody's own run
/// begins elsewhere, and so finds what nobody has thought of.
const SEED_IN_CI: u64 = 2_026;

fn from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: not a number")))
}

#[test]
fn the_stores_are_equal() {
    stores_are_equal(&steps::sequences());
}

#[test]
fn the_stores_are_equal_where_few_jobs_move_about() {
    stores_are_equal(&steps::moves());
}

fn stores_are_equal(sequences: &impl Strategy<Value = Vec<steps::Step>>) {
    let in_ci = std::env::var_os("CI").is_some();
    let fresh = || if in_ci { SEED_IN_CI } else { fastrand::u64(..) };
    let seed = from_env("SPRAG_MODEL_SEED").unwrap_or_else(fresh);
    let cases = from_env("SPRAG_MODEL_SEQUENCES").unwrap_or(SEQUENCES);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..Config::default() };

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let rig = runtime.block_on(Rig::start());
    let run =
        |steps: Vec<steps::Step>| runtime.block_on(rig.run(&steps)).map_err(TestCaseError::fail);
    let result = TestRunner::new_with_rng(config, rng).run(sequences, run);
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, steps)) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
            panic!("SPRAG_MODEL_SEED={seed}\n{}\n{}", steps.join("\n"), why.message());
        }
        Err(error) => panic!("SPRAG_MODEL_SEED={seed}\n{error}"),
    }
}
