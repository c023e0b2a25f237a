//! What a URL says: which servers, how they belong together, who asks.

use crate::model::StoreError;
use percent_encoding::percent_decode_str;
use redis::ProtocolVersion;
use std::{fmt, path::PathBuf, time::Duration};

/// The default port of a server, and of a sentinel.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// How long somebody waits for one of the pool's connections.
const POOL_WAIT: Duration = Duration::from_secs(5);

/// The servers that a URL names, and what to tell them.
pub(crate) struct Target {
    pub(super) topology: Topology,
    pub(super) servers: Vec<Server>,
    /// Files of PEM, if the connections are encrypted.
    pub(super) tls: Option<TlsFiles>,
    pub(super) login: Login,
    /// For the sentinels, which have users of their own.
    #[cfg_attr(not(feature = "sentinel"), allow(dead_code, reason = "sentinels only"))]
    pub(super) sentinel_login: Login,
    pub(super) db: u16,
    pub(super) protocol: ProtocolVersion,
    pub(crate) allow_eviction: bool,
    pub(crate) pool_size: usize,
    pub(crate) pool_wait: Duration,
}

/// How the servers belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Topology {
    /// One server.
    Single,
    /// Sentinels, who know the master of this name.
    Sentinel(String),
    /// Nodes of a cluster, who know the others.
    Cluster,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Server {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Certificates by the names of their files; those of the system where there is no `ca`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) ca: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// A user and a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "***");
        f.debug_struct("Login").field("user", &self.user).field("password", &password).finish()
    }
}

/// Without a secret.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<_> = self.servers.iter().map(ToString::to_string).collect();
        let mut shown = f.debug_struct("Target");
        shown.field("topology", &self.topology).field("servers", &servers.join(","));
        shown.field("tls", &self.tls.is_some()).field("user", &self.login.user);
        shown.field("db", &self.db).finish_non_exhaustive()
    }
}

/// What the schemes say: how servers belong together, and whether TLS or a socket leads to them.
struct Scheme {
    topology: Topology,
    tls: bool,
    socket: bool,
}

const SCHEMES: &str = "redis, rediss, redis+unix, redis+sentinel, rediss+sentinel, redis+cluster \
                       or rediss+cluster";

impl Scheme {
    fn read(name: &str) -> Result<Self, StoreError> {
        let of = |topology, tls, socket| Ok(Self { topology, tls, socket });
        match name {
            "redis" => of(Topology::Single, false, false),
            "rediss" => of(Topology::Single, true, false),
            "redis+unix" | "unix" => of(Topology::Single, false, true),
            "redis+sentinel" => of(Topology::Sentinel(String::new()), false, false),
            "rediss+sentinel" => of(Topology::Sentinel(String::new()), true, false),
            "redis+cluster" => of(Topology::Cluster, false, false),
            "rediss+cluster" => of(Topology::Cluster, true, false),
            // What stands before a scheme that was put in the wrong place may be a password.
            other if !is_word(other) => Err(refused("scheme", SCHEMES)),
            other => Err(StoreError::invalid("url scheme", format!("{other:?}"), SCHEMES)),
        }
    }

    /// A scheme that this build leaves out is told from one that there is not.
    fn check_features(&self, name: &str) -> Result<(), StoreError> {
        let lacks = |feature: &str| {
            let bound = format!("another, or sprag built with its feature {feature:?}");
            Err(StoreError::invalid("url scheme", format!("{name:?}"), &bound))
        };
        match self.topology {
            Topology::Sentinel(_) if !cfg!(feature = "sentinel") => lacks("sentinel"),
            Topology::Cluster if !cfg!(feature = "cluster") => lacks("cluster"),
            _ if self.tls && !cfg!(feature = "tls") => lacks("tls"),
            _ => Ok(()),
        }
    }
}

/// No text repeats what may hold a secret: only names of fields, and values that are none.
fn refused(field: &str, bound: &str) -> StoreError {
    StoreError::Invalid(format!("url {field}: must be {bound}"))
}

impl Target {
    /// Reads `scheme://[user[:password]@]host[:port][,host[:port]…][/db or /master][?option=value&…]`,
    /// where a socket's path stands for the hosts.
    pub(crate) fn read(url: &str) -> Result<Self, StoreError> {
        let whole = || refused("as a whole", "scheme://[user:password@]host[:port][/db]");
        let (name, rest) = url.split_once("://").ok_or_else(whole)?;
        let scheme = Scheme::read(name)?;
        scheme.check_features(name)?;
        if let Some((_, fragment)) = rest.split_once('#') {
            let why = match fragment {
                "insecure" => {
                    "absent: a server's certificate is always checked; name its CA with ca="
                }
                _ => "absent; a # in a password is %23",
            };
            return Err(refused("fragment", why));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut target = Self {
            tls: scheme.tls.then(TlsFiles::default),
            topology: scheme.topology,
            servers: Vec::new(),
            login: Login::default(),
            sentinel_login: Login::default(),
            db: 0,
            protocol: ProtocolVersion::RESP2,
            allow_eviction: false,
            pool_size: 8,
            pool_wait: POOL_WAIT,
        };
        if scheme.socket {
            let path = decoded("path", rest)?;
            if !path.starts_with('/') {
                return Err(refused("path", "an absolute path: redis+unix:///path"));
            }
            target.servers.push(Server::Unix(path.into()));
        } else {
            target.read_authority(rest)?;
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (option, value) = pair.split_once('=').unwrap_or((pair, ""));
            target.set(option, decoded(option, value)?, scheme.socket)?;
        }
        target.check()?;
        Ok(target)
    }

    fn read_authority(&mut self, rest: &str) -> Result<(), StoreError> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let some = |text: String| (!text.is_empty()).then_some(text);
        self.login.user = some(decoded("user", user)?);
        self.login.password = some(decoded("password", password)?);
        let port = match self.topology {
            Topology::Sentinel(_) => SENTINEL_PORT,
            _ => PORT,
        };
        for host in hosts.split(',') {
            self.servers.push(server(host, port)?);
        }
        if self.servers.len() > 1 && self.topology == Topology::Single {
            return Err(refused(
                "host",
                "one host: several are redis+sentinel:// or redis+cluster://",
            ));
        }
        let path = path.trim_end_matches('/');
        if let Topology::Sentinel(master) = &mut self.topology {
            let (name, db) = path.split_once('/').unwrap_or((path, ""));
            if name.is_empty() {
                return Err(refused(
                    "path",
                    "the master's name: redis+sentinel://host,host/name[/db]",
                ));
            }
            *master = decoded("path", name)?;
            self.db = database(db)?;
        } else {
            self.db = database(path)?;
        }
        Ok(())
    }

    fn set(&mut self, option: &str, value: String, socket: bool) -> Result<(), StoreError> {
        match option {
            "db" if socket => self.db = database(&value)?,
            "user" if socket => self.login.user = Some(value),
            "pass" if socket => self.login.password = Some(value),
            "protocol" => {
                self.protocol = match &*value {
                    "2" | "resp2" => ProtocolVersion::RESP2,
                    "3" | "resp3" => ProtocolVersion::RESP3,
                    _ => return Err(refused("protocol", "resp2 or resp3")),
                }
            }
            "allow_eviction" => {
                self.allow_eviction = match &*value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(refused("allow_eviction", "yes or no")),
                }
            }
            "pool" => {
                let size = value.parse().ok().filter(|size| (1..=1_000).contains(size));
                self.pool_size = size.ok_or_else(|| refused("pool", "a number from 1 to 1000"))?;
            }
            "sentinel_user" if self.is_sentinel() => self.sentinel_login.user = Some(value),
            "sentinel_pass" if self.is_sentinel() => self.sentinel_login.password = Some(value),
            "ca" | "cert" | "key" => {
                let files = self.tls.as_mut();
                let files = files.ok_or_else(|| refused(option, "absent, or the scheme rediss"))?;
                let file = Some(PathBuf::from(value));
                match option {
                    "ca" => files.ca = file,
                    "cert" => files.cert = file,
                    _ => files.key = file,
                }
            }
            // Not its value: it may be a secret under a wrong name. Nor more than a name: a ? in a
            // password makes an option of its rest.
            other => {
                let known = "protocol, allow_eviction, pool; for rediss ca, cert, key; for redis+unix \
                             db, user, pass; for redis+sentinel sentinel_user, sentinel_pass";
                if !is_word(other) {
                    return Err(refused("option", &format!("{known}; a ? in a password is %3F")));
                }
                return Err(StoreError::invalid("url option", format!("{other:?}"), known));
            }
        }
        Ok(())
    }

    /// Who asks.
    pub(crate) fn user(&self) -> &str {
        self.login.user.as_deref().unwrap_or("default")
    }

    fn is_sentinel(&self) -> bool {
        matches!(self.topology, Topology::Sentinel(_))
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.topology == Topology::Cluster && self.db != 0 {
            return Err(refused("database", "0: a cluster has no others"));
        }
        if let Some(files) = &self.tls
            && files.cert.is_some() != files.key.is_some()
        {
            return Err(refused(
                "cert",
                "there together with key: a client's certificate needs both",
            ));
        }
        for (field, login) in [("user", &self.login), ("sentinel_user", &self.sentinel_login)] {
            if login.user.is_some() && login.password.is_none() {
                return Err(refused(field, "there together with a password"));
            }
        }
        Ok(())
    }
}

/// What names are made of.
fn is_word(text: &str) -> bool {
    text.len() <= 32 && text.chars().all(|c| c.is_ascii_lowercase() || "_+".contains(c))
}

fn decoded(field: &str, text: &str) -> Result<String, StoreError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| refused(field, "UTF-8"))
}

fn database(text: &str) -> Result<u16, StoreError> {
    match text {
        "" => Ok(0),
        _ => text.parse().map_err(|_| refused("database", "a number from 0 to 65535")),
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn server(text: &str, default: u16) -> Result<Server, StoreError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest
                .split_once(']')
                .ok_or_else(|| refused("host", "closed by a ], if it begins with a ["))?;
            let v6 = host.parse::<std::net::Ipv6Addr>();
            v6.map_err(|_| refused("host", "an IPv6 address between [ and ]"))?;
            (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, Some("")),
        },
    };
    let number = match port {
        Some("") => Some(default),
        Some(port) => port.parse().ok().filter(|port| *port > 0),
        None => None,
    };
    let port = number.ok_or_else(|| refused("port", "a number from 1 to 65535"))?;
    let host = decoded("host", host)?;
    if ["0.0.0.0", "::"].contains(&&*host) {
        return Err(refused("host", "an address to connect to: 0.0.0.0 means all"));
    }
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(refused("host", "a host name or an address"));
    }
    Ok(Server::Tcp(host, port))
}

#[cfg(test)]
mod tests;
