//! Certificates of a test's own, and a server that shows one.

use super::process::fresh_dir;
use super::{Server, Setup};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Authorities and certificates in a directory of their own, which goes with the handle.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
    /// Whom everybody trusts.
    pub ca: PathBuf,
    /// Whom nobody asked.
    pub other_ca: PathBuf,
    /// For `localhost` and 127.0.0.1.
    pub server: Pair,
    /// As `server`, but its time is over.
    pub expired: Pair,
    /// For another host.
    pub elsewhere: Pair,
    /// A client's.
    pub client: Pair,
    /// A client's, by the other authority.
    pub stranger: Pair,
}

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    pub fn new() -> Self {
        let (dir, authority, other) = (fresh_dir(), Authority::new("ca"), Authority::new("other"));
        let at = dir.path();
        let here = || vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let client = || vec!["client".to_owned()];
        Self {
            ca: authority.write(at),
            other_ca: other.write(at),
            server: authority.sign(at, "server", here(), 4096),
            expired: authority.sign(at, "expired", here(), 2020),
            elsewhere: authority.sign(at, "elsewhere", vec!["elsewhere.test".to_owned()], 4096),
            client: authority.sign(at, "client", client(), 4096),
            stranger: other.sign(at, "stranger", client(), 4096),
            dir,
        }
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

struct Authority {
    name: &'static str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &'static str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self { name, issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    fn write(&self, at: &Path) -> PathBuf {
        write(at, &format!("{}.pem", self.name), &self.issuer.pem())
    }

    /// Valid until the end of a year, for a server as well as for a client.
    fn sign(&self, at: &Path, name: &str, hosts: Vec<String>, until: i32) -> Pair {
        let mut params = CertificateParams::new(hosts).expect("hosts");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.not_after = date_time_ymd(until, 12, 31);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            cert: write(at, &format!("{name}.pem"), &cert.pem()),
            key: write(at, &format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

fn write(at: &Path, name: &str, text: &str) -> PathBuf {
    let path = at.join(name);
    std::fs::write(&path, text).expect("the directory is writable");
    path
}

/// How a server with TLS is to be.
#[derive(Debug)]
#[must_use = "nothing runs before `start`"]
pub struct TlsSetup {
    certificates: Certificates,
    shows: fn(&Certificates) -> &Pair,
    asks_clients: bool,
    setup: Setup,
}

impl TlsSetup {
    /// What the server shows: `.shows(|all| &all.expired)`.
    pub fn shows(mut self, shows: fn(&Certificates) -> &Pair) -> Self {
        self.shows = shows;
        self
    }

    /// Clients must show a certificate too.
    pub fn asks_clients(mut self) -> Self {
        self.asks_clients = true;
        self
    }

    /// What else is to be said of the server.
    pub fn with(mut self, with: impl FnOnce(Setup) -> Setup) -> Self {
        self.setup = with(self.setup);
        self
    }

    pub async fn start(self) -> TlsServer {
        let Self { certificates, shows, asks_clients, setup } = self;
        let shown = shows(&certificates);
        let text = |path: &Path| path.display().to_string();
        let setup = setup
            .tls()
            .args(["--tls-cert-file", &text(&shown.cert), "--tls-key-file", &text(&shown.key)])
            .args(["--tls-ca-cert-file", &text(&certificates.ca)])
            .args(["--tls-auth-clients", if asks_clients { "yes" } else { "no" }]);
        TlsServer { server: setup.start().await, certificates, asks_clients }
    }
}

/// A server that speaks only TLS, but for the test's own look at the data. Gone with its handle.
#[derive(Debug)]
pub struct TlsServer {
    pub server: Server,
    pub certificates: Certificates,
    asks_clients: bool,
}

impl TlsServer {
    /// With a good certificate; clients need none.
    pub async fn start() -> Self {
        Self::setup().start().await
    }

    /// To choose more than that.
    pub fn setup() -> TlsSetup {
        TlsSetup {
            certificates: Certificates::new(),
            shows: |all| &all.server,
            asks_clients: false,
            setup: Server::setup(),
        }
    }

    /// By which a client gets in: it trusts the authority, and shows its certificate if it must.
    pub fn url(&self) -> String {
        let client = self.asks_clients.then_some(&self.certificates.client);
        self.url_of("localhost", Some(&self.certificates.ca), client)
    }

    /// With any host, trusting whom you will, showing what you will.
    pub fn url_of(&self, host: &str, ca: Option<&Path>, client: Option<&Pair>) -> String {
        let mut url = format!("rediss://{host}:{}", self.server.port());
        let files = [
            ("ca", ca),
            ("cert", client.map(|pair| &*pair.cert)),
            ("key", client.map(|pair| &*pair.key)),
        ];
        for (name, path) in files {
            if let Some(path) = path {
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(&format!("{name}={}", path.display()));
            }
        }
        url
    }
}
