//! The floor: the least that the same keys can cost. The same variadic commands, pipelined, without
//! Lua: no checks, no answers kept, nothing promised. `benches/` measures it too.

use super::probe::cpu;
use redis::{FromRedisValue, Pipeline, RedisResult, aio::MultiplexedConnection};
use sprag::Envelope;

/// Where it works, and in how big bites.
pub(crate) struct Floor {
    /// What stands before its keys: a namespace and a queue in braces.
    pub(crate) prefix: String,
    /// Jobs of a command.
    pub(crate) batch: usize,
    /// Jobs of a round trip.
    pub(crate) in_flight: usize,
}

impl Floor {
    /// µs of Redis' CPU per job: enqueue, claim, complete.
    pub(crate) async fn cpu_per_job(
        &self,
        probe: &mut MultiplexedConnection,
        jobs: usize,
        make: impl Fn(usize) -> Vec<Envelope>,
    ) -> RedisResult<f64> {
        let start = cpu(probe).await?;
        let mut left = jobs;
        while left > 0 {
            let made = make(left.min(self.in_flight));
            self.enqueue(probe, &made).await?;
            left -= made.len();
        }
        self.drain(probe).await?;
        Ok((cpu(probe).await? - start) / jobs as f64)
    }

    /// Claims and completes until nothing is left.
    pub(crate) async fn drain(&self, probe: &mut MultiplexedConnection) -> RedisResult<()> {
        loop {
            let ids = self.claim(probe).await?;
            if ids.iter().all(Vec::is_empty) {
                return Ok(());
            }
            self.complete(probe, &ids).await?;
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// One round trip.
    pub(crate) async fn enqueue(
        &self,
        probe: &mut MultiplexedConnection,
        jobs: &[Envelope],
    ) -> RedisResult<()> {
        let mut pipe = redis::pipe();
        for jobs in jobs.chunks(self.batch) {
            let records: Vec<_> = jobs.iter().map(|job| (job.id().as_str(), record(job))).collect();
            pipe.hset_multiple(self.key("jobs"), &records).ignore();
            let ids: Vec<_> = jobs.iter().map(|job| job.id().as_str()).collect();
            pipe.lpush(self.key("pending:4"), ids).ignore();
            pipe.hincr(self.key("meta"), "unfinished", jobs.len()).ignore();
        }
        execute(&pipe, probe).await
    }

    /// Two round trips. Empty when nothing is left.
    pub(crate) async fn claim(
        &self,
        probe: &mut MultiplexedConnection,
    ) -> RedisResult<Vec<Vec<String>>> {
        let mut pops = redis::pipe();
        for _ in 0..self.in_flight.div_ceil(self.batch) {
            pops.cmd("RPOP").arg(self.key("pending:4")).arg(self.batch);
        }
        let popped: Vec<Vec<String>> = execute(&pops, probe).await?;
        if popped.iter().all(Vec::is_empty) {
            return Ok(popped);
        }
        let mut hold = redis::pipe();
        for ids in popped.iter().filter(|ids| !ids.is_empty()) {
            hold.cmd("HMGET").arg(self.key("jobs")).arg(ids);
            let leases: Vec<_> = ids.iter().map(|id| (1_764_500_000_000u64, id)).collect();
            hold.zadd_multiple(self.key("active"), &leases).ignore();
            let held: Vec<_> = ids.iter().map(|id| (id, "1764500000000000 w1")).collect();
            hold.hset_multiple(self.key("holder"), &held).ignore();
        }
        let _: Vec<Vec<Vec<u8>>> = execute(&hold, probe).await?;
        Ok(popped)
    }

    /// One round trip.
    pub(crate) async fn complete(
        &self,
        probe: &mut MultiplexedConnection,
        popped: &[Vec<String>],
    ) -> RedisResult<()> {
        let mut end = redis::pipe();
        for ids in popped.iter().filter(|ids| !ids.is_empty()) {
            end.zrem(self.key("active"), ids).ignore();
            end.hdel(self.key("holder"), ids).ignore();
            end.hdel(self.key("jobs"), ids).ignore();
            end.hincr(self.key("meta"), "unfinished", -(ids.len() as i64)).ignore();
        }
        execute(&end, probe).await
    }
}

async fn execute<T: FromRedisValue>(
    pipe: &Pipeline,
    probe: &mut MultiplexedConnection,
) -> RedisResult<T> {
    pipe.query_async(probe).await
}

/// As many bytes as our record has.
fn record(job: &Envelope) -> Vec<u8> {
    let (fingerprint, kind) = (job.fingerprint(), job.kind());
    let header = format!("at=1764500000000 fp={fingerprint} kind={kind} codec=raw\n");
    [header.as_bytes(), job.payload()].concat()
}
