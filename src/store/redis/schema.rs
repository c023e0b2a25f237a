//! The version of the layout of keys: a key of the namespace, written by who makes its first queue.

use super::{Inner, keys};
use crate::model::StoreError;
use redis::{Value, from_redis_value};

/// How this version lays keys out.
pub(super) const LAYOUT: u64 = 1;

/// Whether this version may touch the namespace. One without a version is as old as the first.
pub(super) fn judge(key: &str, found: Value) -> Result<(), StoreError> {
    let found: Option<Vec<u8>> = from_redis_value(found)
        .map_err(|error| StoreError::Backend(format!("{key} cannot be read: {error}")))?;
    let Some(found) = found else { return Ok(()) };
    let version = std::str::from_utf8(&found).ok().and_then(|text| text.parse::<u64>().ok());
    let why = match version {
        Some(version) if version <= LAYOUT => return Ok(()),
        Some(version) => format!(
            "{key} is {version}: a newer sprag laid these keys out, and this one knows {LAYOUT}; \
             upgrade this program; nothing was read or written"
        ),
        None => format!(
            "{key} holds what no sprag writes there; look at who did, and SET it to {LAYOUT} if \
             this version's queues are what it stands beside; nothing was read or written"
        ),
    };
    Err(StoreError::Backend(why))
}

impl Inner {
    /// Says how keys are laid out, where nobody has said so.
    pub(super) async fn say_layout(&self) -> Result<(), StoreError> {
        let mut set = redis::cmd("SET");
        set.arg(keys::schema(&self.namespace)).arg(LAYOUT).arg("NX");
        self.plain(&set).await.map(drop)
    }
}
