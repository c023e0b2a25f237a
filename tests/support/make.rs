//! Which server: the one of this machine, or another make.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Who made the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// `SPRAG_REDIS_SERVER`, else the first that is on the PATH.
    Local,
    /// Redis 8.2, from `scripts/need other-servers`.
    Redis8,
    /// Valkey 9, from `scripts/need other-servers`.
    Valkey9,
}

impl Make {
    /// The make if it is here. If not, says loudly that the test is skipped.
    pub fn if_here(self) -> Option<Self> {
        if self.program().is_some() {
            return Some(self);
        }
        eprintln!("!!! {self:?} IS NOT HERE, SKIPPED: run `scripts/need other-servers`");
        None
    }

    /// The path of its server.
    pub(super) fn binary(self) -> PathBuf {
        self.program().unwrap_or_else(|| match self {
            Self::Local => panic!(
                "no redis-server or valkey-server on the PATH: run `scripts/need redis-server`, or \
                 set SPRAG_REDIS_SERVER to the path of one"
            ),
            other => panic!("{other:?} is not here: run `scripts/need other-servers`"),
        })
    }

    fn program(self) -> Option<PathBuf> {
        static LOCAL: OnceLock<Option<String>> = OnceLock::new();
        match self {
            Self::Local => LOCAL.get_or_init(local).as_ref().map(PathBuf::from),
            Self::Redis8 => other("redis-8.2"),
            Self::Valkey9 => other("valkey-9"),
        }
    }
}

fn local() -> Option<String> {
    let named = std::env::var("SPRAG_REDIS_SERVER").ok().filter(|name| !name.is_empty());
    named.or_else(|| {
        ["redis-server", "valkey-server"].iter().find(|name| runs(name)).map(ToString::to_string)
    })
}

fn other(name: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/other-servers").join(name);
    here.exists().then_some(here)
}

fn runs(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok()
}
