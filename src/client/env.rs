//! What the environment says of the server: its URL, and its password apart from it.

use crate::model::StoreError;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::ffi::OsString;

const PASSWORD: &str = "SPRAG_REDIS_PASSWORD";
const PASSWORD_FILE: &str = "SPRAG_REDIS_PASSWORD_FILE";

/// The URL that the environment names: `SPRAG_REDIS_URL`, else `REDIS_URL`, else
/// `redis://127.0.0.1:6379`; with the password that it names, see [`with_env_password`].
///
/// # Errors
/// `Invalid` if a variable is not UTF-8, or the password cannot be had.
pub(super) fn url_from_env() -> Result<String, StoreError> {
    let url = match variable("SPRAG_REDIS_URL")? {
        None => variable("REDIS_URL")?,
        named => named,
    };
    with_env_password(url.unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned()))
}

/// The URL with the password of `SPRAG_REDIS_PASSWORD`, or of the file that
/// `SPRAG_REDIS_PASSWORD_FILE` names (without the line's end), unless it has one of its own.
///
/// # Errors
/// `Invalid` if both are set, one is not UTF-8, or the file cannot be read. No text has a password.
pub fn with_env_password(url: String) -> Result<String, StoreError> {
    if url.starts_with("memory:") || has_password(&url) {
        return Ok(url);
    }
    let password = match (variable(PASSWORD)?, file_variable()) {
        (Some(_), Some(_)) => {
            let text = format!("{PASSWORD}: set beside {PASSWORD_FILE}; must be one of the two");
            return Err(StoreError::Invalid(text));
        }
        (password, None) => password,
        (None, Some(file)) => Some(from_file(&file)?),
    };
    Ok(password.map_or(url.clone(), |password| with_password(&url, &password)))
}

/// A variable that is set to something.
fn variable(name: &str) -> Result<Option<String>, StoreError> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    // Not its value, which may be a secret.
    let not_utf_8 = |_| StoreError::Invalid(format!("environment variable {name}: not UTF-8"));
    value.map(OsString::into_string).transpose().map_err(not_utf_8)
}

/// A path is what it is.
fn file_variable() -> Option<OsString> {
    std::env::var_os(PASSWORD_FILE).filter(|file| !file.is_empty())
}

fn from_file(file: &OsString) -> Result<String, StoreError> {
    let unreadable = |error: std::io::Error| {
        let file = file.display();
        StoreError::Invalid(format!("{PASSWORD_FILE}: cannot read {file}: {error}"))
    };
    let mut text = std::fs::read_to_string(file).map_err(unreadable)?;
    let end = text.strip_suffix('\n').map_or(text.len(), |line| line.trim_end_matches('\r').len());
    text.truncate(end);
    if text.is_empty() {
        return Err(StoreError::Invalid(format!("{PASSWORD_FILE}: no password in it")));
    }
    Ok(text)
}

/// `scheme://`, what names the server, and the rest. A URL that is none is refused by who opens it.
fn parts(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, after) = url.split_once("://")?;
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    Some((scheme, &after[..end], &after[end..]))
}

fn is_socket(scheme: &str) -> bool {
    scheme.ends_with("unix")
}

fn has_password(url: &str) -> bool {
    let Some((scheme, authority, rest)) = parts(url) else { return false };
    if is_socket(scheme) {
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        return query.split('&').any(|field| field.starts_with("pass="));
    }
    let userinfo = authority.rsplit_once('@').map(|(userinfo, _)| userinfo);
    let password = userinfo.and_then(|userinfo| userinfo.split_once(':'));
    password.is_some_and(|(_, password)| !password.is_empty())
}

fn with_password(url: &str, password: &str) -> String {
    let Some((scheme, authority, rest)) = parts(url) else { return url.to_owned() };
    let password = utf8_percent_encode(password, NON_ALPHANUMERIC);
    if is_socket(scheme) {
        let (rest, fragment) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
        let joint = if rest.contains('?') { '&' } else { '?' };
        return format!("{scheme}://{authority}{rest}{joint}pass={password}{fragment}");
    }
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = user.trim_end_matches(':');
    format!("{scheme}://{user}:{password}@{host}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_put_into_a_url_that_has_none() {
        for (url, with) in [
            ("redis://h", "redis://:p%40%2F@h"),
            ("redis://h:1/2", "redis://:p%40%2F@h:1/2"),
            ("redis://u@h:1?protocol=resp3", "redis://u:p%40%2F@h:1?protocol=resp3"),
            ("redis://u:@h", "redis://u:p%40%2F@h"),
            ("redis+unix:///a/b", "redis+unix:///a/b?pass=p%40%2F"),
            ("unix:///a/b?db=1", "unix:///a/b?db=1&pass=p%40%2F"),
            ("no url", "no url"),
        ] {
            assert!(!has_password(url), "{url}");
            assert_eq!(with_password(url, "p@/"), with);
            assert!(has_password(with) || with == url, "{with}");
        }
        assert!(has_password("redis://u:p@h") && has_password("redis+unix:///s?user=u&pass=p"));
    }
}
