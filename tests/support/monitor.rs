//! What clients send.

use super::Server;
use futures_util::StreamExt;
use std::{collections::BTreeMap, time::Duration};

impl Server {
    /// The commands that clients send from now on, for so long: how often each. What scripts do is
    /// not among them, though the server's own statistics count it.
    pub async fn sent_within(&self, time: Duration) -> BTreeMap<String, u64> {
        let client = redis::Client::open(self.url()).expect("a url");
        let monitor = client.get_async_monitor().await.expect("MONITOR");
        let mut lines = Box::pin(monitor.into_on_message::<String>());
        let (mut sent, over) = (BTreeMap::new(), tokio::time::sleep(time));
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return sent,
                line = lines.next() => {
                    let line = line.expect("the server lives");
                    // `1764500000.123456 [0 unix:/tmp/s] "blpop" …`; what a script does is `[0 lua]`.
                    let (from, command) = line.split_once("] \"").expect("a line of MONITOR");
                    if !from.ends_with(" lua") {
                        let name = command.split('"').next().unwrap_or_default();
                        *sent.entry(name.to_ascii_lowercase()).or_default() += 1;
                    }
                }
            }
        }
    }
}
