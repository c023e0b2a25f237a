//! A worker without loops: runs what can be run now, one job after another.

use super::{
    CancelReason, Context, Shared,
    execute::run,
    running::trusted,
    settle::{given_up, settle_queue},
    sources, sweep,
};
use crate::{
    model::StoreError,
    store::{Claim, Pace},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// A call that was repeated for the store's whole budget is made again after so long.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Runs until nothing is claimable.
pub(super) async fn go_through(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut sources = sources::Sources::new(shared.order);
    while !shared.shutdown.is_quiet() {
        if shared.selection.is_open() {
            sources::look_up(shared).await?;
        }
        let queues = shared.queues.borrow().clone();
        for (queue, _) in queues.iter() {
            let swept = shared.store().sweep(queue, Pace::Now).await?;
            sweep::tell(shared, queue, swept);
        }
        sources.replace(&queues);
        let Some(context) = claim_one(shared, &mut sources).await? else { return Ok(()) };
        let _in_hand = InHand { shared, context: context.clone() };
        let queue = context.queue().clone();
        let mut unsettled = vec![run(shared, context.clone()).await];
        while let Err(again) = settle_queue(shared.clone(), queue.clone(), unsettled).await {
            if shared.running.is_lost(&context) {
                again.iter().for_each(|job| given_up(shared, job));
                let text = format!("job {} ran, and could not be settled in time", context.id());
                return Err(StoreError::Unavailable(text));
            }
            sleep(AFTER_FAILURE).await;
            unsettled = again;
        }
    }
    Ok(())
}

/// The job that runs. Settled, or dropped with the whole call, it is not this worker's any more.
struct InHand<'a> {
    shared: &'a Shared,
    context: Context,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if !self.shared.running.is_lost(&self.context) {
            self.context.cancellation().cancel(CancelReason::Shutdown);
            self.shared.running.remove(&self.context);
        }
    }
}

/// One job of the queue whose turn it is, or of the next that has one.
async fn claim_one(
    shared: &Arc<Shared>,
    sources: &mut sources::Sources,
) -> Result<Option<Context>, StoreError> {
    let mut open: Vec<usize> = (0..sources.all.len()).collect();
    while let Some((turn, _)) = sources.share_out(&open, 1).first().copied() {
        let queue = sources.all[turn].queue.clone();
        let sent = Instant::now();
        let claim = shared.store().claim(&queue, &shared.id, 1, shared.lease).await?;
        let Claim { mut jobs, more, ended } = claim;
        shared.hooks.tell_all(&queue, ended);
        if let Some(job) = jobs.pop() {
            let context = Context::new(job, shared.lease, shared.surroundings.clone());
            shared.running.add(&context, trusted(sent, shared.lease));
            return Ok(Some(context));
        }
        if !more {
            open.retain(|source| *source != turn);
        }
    }
    Ok(None)
}
