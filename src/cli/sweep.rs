//! `sprag sweep`.

use crate::{args::Global, connect, fail::Failure, out};
use serde::Serialize;
use sprag::{QueueName, Store, store::Pace};

/// Do what time has made due: promote, reclaim, expire, evict
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
}

#[derive(Serialize)]
struct Answer {
    promoted: u64,
    reclaimed: u64,
    quarantined: u64,
    expired: u64,
    evicted: u64,
}

pub(crate) async fn sweep(global: &Global, args: Args) -> Result<(), Failure> {
    let swept = connect::store(global)?.sweep(&args.queue, Pace::Now).await?;
    let answer = Answer {
        promoted: swept.promoted,
        reclaimed: swept.reclaimed,
        quarantined: swept.quarantined,
        expired: swept.expired,
        evicted: swept.evicted,
    };
    if global.json {
        return out::object(&answer);
    }
    out::pairs(vec![
        ("promoted", answer.promoted.to_string()),
        ("reclaimed", answer.reclaimed.to_string()),
        ("quarantined", answer.quarantined.to_string()),
        ("expired", answer.expired.to_string()),
        ("evicted", answer.evicted.to_string()),
    ])
}
