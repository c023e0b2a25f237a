//! Asks sentinels which server is the master.
//!
//! As clients should, by "Guidelines for Redis clients with support for Redis Sentinel", redis.io: one
//! after another until one answers, and who is named is asked whether it is the master.

use super::{
    dial::{Dialing, config},
    switch::Switch,
    target::Server,
};
use crate::{
    model::StoreError,
    store::redis::fault::{Fault, NO_ANSWER},
};
use redis::{Client, FromRedisValue, Value};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// How long a sentinel, or a server that one names, may take to answer, connecting included.
const ANSWER: Duration = Duration::from_secs(1);

/// The sentinels of one master.
pub(super) struct Sentinels {
    pub(super) master: String,
    sentinels: Vec<(Server, Client)>,
    /// Who answered last is asked first.
    first: AtomicUsize,
    switch: Switch,
    dialing: Dialing,
}

impl Sentinels {
    pub(super) fn new(master: &str, sentinels: Vec<(Server, Client)>, dialing: Dialing) -> Self {
        let clients = sentinels.iter().map(|(_, client)| client.clone()).collect();
        let switch = Switch::new(master, clients);
        Self { master: master.to_owned(), sentinels, first: AtomicUsize::new(0), switch, dialing }
    }

    pub(super) fn are_tls(&self) -> bool {
        self.dialing.is_tls()
    }

    /// When the master changed last.
    pub(super) fn switched_at(&self) -> Option<Instant> {
        self.switch.at()
    }

    /// Leads to the master.
    pub(super) async fn client(&self) -> Result<Client, Fault> {
        self.switch.listen();
        if let Some(new) = self.switch.fresh() {
            return self.dialing.client(&new).map_err(Fault::refused);
        }
        let (first, count) = (self.first.load(Ordering::Relaxed), self.sentinels.len());
        let (mut tried, mut why) = (Vec::new(), None);
        for i in (first..first + count).map(|i| i % count) {
            let fault = match self.named_by(&self.sentinels[i]).await {
                // Another sentinel said so, in vain.
                Ok(server) if tried.contains(&server) => continue,
                Ok(server) => match self.checked(&server).await {
                    Ok(client) => {
                        self.first.store(i, Ordering::Relaxed);
                        return Ok(client);
                    }
                    Err(fault) => {
                        tried.push(server);
                        fault
                    }
                },
                Err(fault) => fault,
            };
            // One that refuses tells nothing of those that are away for a moment.
            if why.is_none() || fault.may_pass() {
                why = Some(fault);
            }
        }
        Err(why.unwrap_or_else(|| Fault::unavailable("no sentinel is known")))
    }

    /// Who is the master, by this sentinel.
    async fn named_by(&self, (at, sentinel): &(Server, Client)) -> Result<Server, Fault> {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        let named: Option<(String, u16)> = asked(sentinel, &ask).await.map_err(|fault| {
            let hint = match &fault.error {
                _ if fault.forbidden => {
                    " (the sentinels have users of their own, sentinel_user and sentinel_pass in the URL, who \
                     need SENTINEL GET-MASTER-ADDR-BY-NAME and SUBSCRIBE)"
                }
                StoreError::Backend(why) if why.contains("unknown command") => " (is it a sentinel?)",
                StoreError::Backend(why) if why.contains("user and password") => {
                    " (those of the sentinels are sentinel_user and sentinel_pass in the URL)"
                }
                _ => "",
            };
            // It says nothing of what sprag's own user may do.
            Fault { forbidden: false, ..fault.hinted(hint).at(format!("sentinel {at}")) }
        })?;
        match named {
            Some((host, port)) => Ok(Server::Tcp(host, port)),
            None => Err(Fault::refused(StoreError::Backend(format!(
                "sentinel {at}: knows no master {:?} (the name is the URL's path; SENTINEL MASTERS lists them)",
                self.master
            )))),
        }
    }

    /// Leads to this server, if it is the master, or does not tell.
    async fn checked(&self, server: &Server) -> Result<Client, Fault> {
        let client = self.dialing.client(server).map_err(Fault::refused)?;
        let role: Value = match asked(&client, &redis::cmd("ROLE")).await {
            Err(fault) if fault.forbidden => return Ok(client),
            role => role.map_err(|fault| fault.at(server))?,
        };
        match role {
            Value::Array(role) if role.first() == Some(&Value::BulkString(b"slave".to_vec())) => {
                let text = "is a replica, though a sentinel names it as the master";
                Err(Fault { wrong_server: true, ..Fault::unavailable(text).at(server) })
            }
            _ => Ok(client),
        }
    }
}

/// Sends one command on a connection of its own.
async fn asked<T: FromRedisValue>(client: &Client, cmd: &redis::Cmd) -> Result<T, Fault> {
    let answer = async {
        let config = config(None);
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await.map_err(Fault::while_connecting)?;
        cmd.query_async(&mut connection).await.map_err(Fault::from)
    };
    match timeout(ANSWER, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::unavailable(NO_ANSWER)),
    }
}
