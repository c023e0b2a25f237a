//! How one connection to one server is opened: over TCP, TLS or a socket, by way of sentinels or not.

#[cfg(feature = "sentinel")]
use super::sentinels::Sentinels;
use super::target::{Login, Server, Target};
use super::tls::{self, Tls};
use crate::{model::StoreError, store::redis::fault::Fault};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo,
};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// How long a TCP connection and its greeting may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that is silent for so long is asked for a sign of life.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// What was sent and not received for so long shows that the connection is dead.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(5);

/// Leads to a server, whichever has its part at the moment.
#[allow(clippy::large_enum_variant, reason = "one for each server, behind an Arc")]
pub(super) enum Dialer {
    Server(Client),
    #[cfg(feature = "sentinel")]
    Sentinels(Sentinels),
}

impl fmt::Display for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(client) => write!(f, "{}", client.get_connection_info().addr()),
            #[cfg(feature = "sentinel")]
            Self::Sentinels(sentinels) => write!(f, "master {:?}", sentinels.master),
        }
    }
}

impl Dialer {
    /// Asks for the server to connect to.
    pub(super) async fn client(&self) -> Result<Client, Fault> {
        match self {
            Self::Server(client) => Ok(client.clone()),
            #[cfg(feature = "sentinel")]
            Self::Sentinels(sentinels) => sentinels.client().await,
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        match self {
            Self::Server(client) => {
                matches!(client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. })
            }
            #[cfg(feature = "sentinel")]
            Self::Sentinels(sentinels) => sentinels.are_tls(),
        }
    }

    /// When another server took its part last.
    pub(super) fn switched_at(&self) -> Option<Instant> {
        match self {
            Self::Server(_) => None,
            #[cfg(feature = "sentinel")]
            Self::Sentinels(sentinels) => sentinels.switched_at(),
        }
    }
}

/// How a connection is made whose answers may take so long; none: as long as they like.
pub(super) fn config(response: Option<Duration>) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(response)
}

/// What is the same for all servers of a target.
#[derive(Clone)]
pub(super) struct Dialing {
    redis: RedisConnectionInfo,
    tls: Option<Tls>,
}

impl Dialing {
    /// Reads the certificates.
    pub(super) fn new(target: &Target) -> Result<Self, StoreError> {
        let tls = target.tls.as_ref().map(tls::read).transpose()?;
        let mut redis = logged_in(&target.login).set_db(target.db.into());
        redis =
            redis.set_protocol(target.protocol).set_lib_name("sprag", env!("CARGO_PKG_VERSION"));
        Ok(Self { redis, tls })
    }

    #[cfg(feature = "sentinel")]
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Leads to this very server.
    pub(super) fn server(&self, server: &Server) -> Result<Dialer, StoreError> {
        self.client(server).map(Dialer::Server)
    }

    pub(super) fn client(&self, server: &Server) -> Result<Client, StoreError> {
        let info = self.address(server).into_connection_info().map_err(|e| unusable(&e))?;
        self.open(info.set_redis_settings(self.redis.clone()).set_tcp_settings(tcp_settings()))
    }

    fn address(&self, server: &Server) -> ConnectionAddr {
        match server {
            Server::Unix(path) => ConnectionAddr::Unix(path.clone()),
            Server::Tcp(host, port) if self.tls.is_some() => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: false,
                tls_params: None,
            },
            Server::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
        }
    }

    fn open(&self, info: ConnectionInfo) -> Result<Client, StoreError> {
        let opened = match &self.tls {
            #[cfg(feature = "tls")]
            Some(tls) => Client::build_with_tls(info, tls.clone()),
            #[cfg(not(feature = "tls"))]
            Some(never) => match *never {},
            None => Client::open(info),
        };
        opened.map_err(|e| unusable(&e))
    }

    /// Leads to the master that the sentinels name.
    #[cfg(feature = "sentinel")]
    pub(super) fn sentinels(&self, target: &Target, master: &str) -> Result<Dialer, StoreError> {
        let sentinel = |server: &Server| Ok((server.clone(), self.sentinel(target, server)?));
        let sentinels = target.servers.iter().map(sentinel).collect::<Result<_, StoreError>>()?;
        Ok(Dialer::Sentinels(Sentinels::new(master, sentinels, self.clone())))
    }

    /// Leads to a sentinel.
    #[cfg(feature = "sentinel")]
    fn sentinel(&self, target: &Target, server: &Server) -> Result<Client, StoreError> {
        let info = self.address(server).into_connection_info().map_err(|e| unusable(&e))?;
        let login = logged_in(&target.sentinel_login);
        self.open(info.set_redis_settings(login).set_tcp_settings(tcp_settings()))
    }
}

fn logged_in(login: &Login) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default();
    if let Some(user) = &login.user {
        info = info.set_username(user);
    }
    if let Some(password) = &login.password {
        info = info.set_password(password);
    }
    info
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(USER_TIMEOUT);
    settings
}

/// redis-rs does not repeat a URL, and with it a password, in these texts.
fn unusable(error: &redis::RedisError) -> StoreError {
    StoreError::Invalid(format!("url: {error}"))
}
