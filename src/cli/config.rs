//! `sprag.toml`: what flags and environment leave open.

use crate::{
    args::Flags,
    connect::{self, env},
};
use serde::{Deserialize, Deserializer, de::Error};
use sprag::{Namespace, StoreError};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::OnceLock,
};

const NAME: &str = "sprag.toml";

/// The settings of a file; none is at its default if it is not there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default, deserialize_with = "url")]
    pub(crate) url: Option<String>,
    #[serde(default, deserialize_with = "namespace")]
    pub(crate) namespace: Option<Namespace>,
    pub(crate) json: Option<bool>,
    pub(crate) yes: Option<bool>,
    pub(crate) quiet: Option<bool>,
}

/// One that can be opened; nothing is connected to yet.
fn url<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let url = String::deserialize(value)?;
    let opened = connect::builder(&url).and_then(|builder| builder.build());
    opened.map(|_| Some(url)).map_err(D::Error::custom)
}

fn namespace<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Namespace>, D::Error> {
    Namespace::new(String::deserialize(value)?).map(Some).map_err(D::Error::custom)
}

/// What was read, for its URL may stand in an error text. See [`crate::redact`].
static READ: OnceLock<String> = OnceLock::new();

/// The text of the file that was read, if one was.
pub(crate) fn text() -> Option<&'static str> {
    READ.get().map(String::as_str)
}

impl Config {
    /// The file that `--config` or `SPRAG_CONFIG` names, else the first that there is.
    pub(crate) fn find(flags: &Flags) -> Result<Self, StoreError> {
        Self::at(flags.config.as_deref())
    }

    /// The same when the command line could not be read: a file that cannot be either says nothing.
    pub(crate) fn of_unread_args() -> Self {
        let args: Vec<_> = std::env::args_os().skip(1).collect();
        let after = args.iter().position(|arg| arg == "--config").and_then(|at| args.get(at + 1));
        let joined =
            |arg: &std::ffi::OsString| arg.to_str()?.strip_prefix("--config=").map(PathBuf::from);
        let named = after.map(PathBuf::from).or_else(|| args.iter().find_map(joined));
        Self::at(named.as_deref()).unwrap_or_default()
    }

    fn at(named: Option<&Path>) -> Result<Self, StoreError> {
        if let Some(file) = named {
            return Self::read(file)?.ok_or_else(|| missing("--config", file));
        }
        if let Some(file) = env("SPRAG_CONFIG")?.map(PathBuf::from) {
            return Self::read(&file)?.ok_or_else(|| missing("SPRAG_CONFIG", &file));
        }
        for file in places() {
            if let Some(found) = Self::read(&file)? {
                return Ok(found);
            }
        }
        Ok(Self::default())
    }

    /// None: there is no such file.
    fn read(file: &Path) -> Result<Option<Self>, StoreError> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(StoreError::Invalid(format!("{}: {error}", file.display())));
            }
        };
        // Read once a run; a second time, after a command line that was refused, it is the same.
        let text = READ.get_or_init(|| text);
        let read = toml::from_str(text).map_err(|error| told(file, text, &error));
        read.map(Some)
    }
}

fn missing(who: &str, file: &Path) -> StoreError {
    StoreError::Invalid(format!("{who}: {} is not there", file.display()))
}

/// Here, then in the user's own.
fn places() -> Vec<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let set = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let own = set.map(PathBuf::from).or_else(home);
    let own = own.map(|folder| folder.join("sprag").join(NAME));
    std::iter::once(PathBuf::from(NAME)).chain(own).collect()
}

/// File, line and key, and what is wrong, on one line.
fn told(file: &Path, text: &str, error: &toml::de::Error) -> StoreError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..start).unwrap_or_default();
    let number = before.matches('\n').count();
    let key = text.lines().nth(number).and_then(|line| line.split_once('='));
    let key = key.map(|(key, _)| format!("{}: ", key.trim())).unwrap_or_default();
    let what = error.message().replace('\n', " ");
    StoreError::Invalid(format!("{}, line {}: {key}{what}", file.display(), number + 1))
}
