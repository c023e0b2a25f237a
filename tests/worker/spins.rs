//! A handler that leaves its runtime no time.

use crate::bench::{Bench, Log, Working, client, default_queue, ms, succeed, worker};
use sprag::{Context, Report};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

const LEASE: Duration = ms(1_500);

/// A thread that wants to run now and then, as a keeper does.
struct Witness {
    over: Arc<AtomicBool>,
    longest: JoinHandle<Duration>,
}

impl Witness {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let longest = std::thread::spawn(move || {
            let (mut longest, mut last) = (Duration::ZERO, Instant::now());
            while !seen.load(Ordering::Relaxed) {
                std::thread::sleep(ms(10));
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            longest
        });
        Self { over, longest }
    }

    /// How long the machine let it wait at most.
    fn longest(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.longest.join().expect("no panic")
    }
}

/// Another worker, on a runtime and thread of its own, that takes the job if it can be had.
fn rival(url: String, log: Log) -> JoinHandle<Report> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            log.wait("start a", 1).await;
            let built = worker(&client(&url), &log, succeed).lease(LEASE).build();
            let rival = built.expect("worker");
            let shutdown = rival.shutdown();
            let ends = async {
                log.wait("over", 1).await;
                shutdown.drain();
            };
            tokio::join!(rival.run_until_shutdown(), ends).0
        })
    })
}

/// Runs a job that occupies the only thread for three leases; the log, and what was done.
async fn spin() -> (Log, Report, u64) {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |_, context: Context| {
            let log = log.clone();
            async move {
                let until = Instant::now() + 3 * LEASE;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                if let Some(reason) = context.cancel_reason() {
                    log.add(&format!("told {reason}"));
                }
                Ok(())
            }
        }
    };
    let working = Working::start(worker(&bench.client, &log, handler).lease(LEASE));
    let rival = rival(bench.server.url(), log.clone());
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    log.add("over");
    rival.join().expect("no panic");
    let today = bench.client.store().days(&default_queue(), 1).await.expect("days").remove(0);
    (log, working.stop().await, today.crashed)
}

/// CASES 16, where nothing else runs while the handler does.
#[tokio::test]
async fn a_handler_that_occupies_the_only_thread_for_three_leases_keeps_its_lease() {
    // A machine that stands still itself shows nothing.
    for _ in 0..10 {
        let witness = Witness::start();
        let (log, report, crashed) = spin().await;
        let longest = witness.longest();
        if longest < LEASE / 5 {
            assert_eq!(log.all(), ["start a", "over"], "{longest:?}");
            assert_eq!((report.completed, report.lost, crashed), (1, 0, 0), "{longest:?}");
            return;
        }
        eprintln!("the machine stood still for {longest:?}: once more");
    }
    panic!("the machine never let a thread run as it should");
}
