//! What a server tells of itself. `benches/` asks by it too.

use redis::{ErrorKind, InfoDict, RedisError, RedisResult, aio::MultiplexedConnection};

/// A section of INFO.
pub(crate) async fn info(
    probe: &mut MultiplexedConnection,
    section: &str,
) -> RedisResult<InfoDict> {
    redis::cmd("INFO").arg(section).query_async(probe).await
}

/// A number of INFO.
pub(crate) fn number(info: &InfoDict, name: &'static str) -> RedisResult<f64> {
    info.get(name).ok_or_else(|| {
        RedisError::from((ErrorKind::UnexpectedReturnType, "INFO does not tell", name.to_owned()))
    })
}

/// µs of CPU that the server has used, for whomever.
pub(crate) async fn cpu(probe: &mut MultiplexedConnection) -> RedisResult<f64> {
    let info = info(probe, "cpu").await?;
    Ok((number(&info, "used_cpu_user")? + number(&info, "used_cpu_sys")?) * 1e6)
}

/// Commands that have run, those inside scripts among them, but for INFO.
pub(crate) async fn commands(probe: &mut MultiplexedConnection) -> RedisResult<f64> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(probe).await?;
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls: f64 = rest.split(',').next()?.parse().ok()?;
        (name != "info").then_some(calls)
    };
    Ok(stats.lines().filter_map(calls).sum())
}
