//! No password is shown.

use crate::config;

/// Characters of a URL that are looked at for its user and password.
const LONGEST_USERINFO: usize = 1_024;

/// The text without user and password of any URL that was given to this process. A URL may reach an
/// error text by ways that nobody thought of, such as a flag in the wrong place.
pub(crate) fn redacted(text: &str) -> String {
    let variables = ["SPRAG_REDIS_URL", "REDIS_URL"].into_iter().filter_map(std::env::var_os);
    let given = std::env::args_os().skip(1).chain(variables);
    let given = given.map(|text| text.to_string_lossy().into_owned());
    // In a file each URL has a line of its own.
    let file = config::text().into_iter().flat_map(str::lines).map(str::to_owned);
    let given: Vec<String> = given.chain(file).collect();
    without(text, &userinfos(&given))
}

/// What stands between `://` and the last `@`, of all that follows and of the word, as it is and as
/// `{:?}` shows it.
fn userinfos(given: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for text in given {
        for (at, mark) in text.match_indices("://") {
            let rest: String = text[at + mark.len()..].chars().take(LONGEST_USERINFO).collect();
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            let ends = [rest.rfind('@'), word.rfind('@')].into_iter().flatten();
            found.extend(ends.map(|end| rest[..end].to_owned()));
        }
    }
    let shown: Vec<_> = found.iter().map(|info| info.escape_debug().to_string()).collect();
    found.extend(shown);
    found.retain(|userinfo| !userinfo.is_empty());
    // What is part of another must not hide the whole of it.
    found.sort_by_key(|userinfo| std::cmp::Reverse(userinfo.len()));
    found.dedup();
    found
}

fn without(text: &str, userinfos: &[String]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        kept.push_str(before);
        let secret = userinfos.iter().find_map(|userinfo| shown_part(after, userinfo));
        if secret.is_some() {
            kept.push_str("***");
        }
        rest = &after[secret.unwrap_or(0)..];
    }
    kept + rest
}

/// How many bytes of the userinfo the text begins with: all of them, or those before a cut.
fn shown_part(text: &str, userinfo: &str) -> Option<usize> {
    let same = text.chars().zip(userinfo.chars()).take_while(|(a, b)| a == b);
    let bytes = same.map(|(c, _)| c.len_utf8()).sum::<usize>();
    let cut = ["…", "\"…"].iter().any(|mark| text[bytes..].starts_with(mark));
    (bytes == userinfo.len() || bytes > 0 && cut).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_a_given_url_are_never_shown() {
        let hint = "must be redis://user:password@host";
        for (given, text, shown) in [
            ("", "no url", "no url"),
            ("redis://h:1/0", "redis://h:1/0", "redis://h:1/0"),
            ("redis://h:x/0", hint, hint),
            ("redis://u:s3cret@h:x", hint, hint),
            ("redis://u:p@h", "must be redis://[user:p@]h", "must be redis://[user:p@]h"),
            ("redis://:s3cret@h", "'redis://:s3cret@h' found", "'redis://***@h' found"),
            ("redis://u:p@ss/w@h", "a redis://u:p@ss/w@h b", "a redis://***@h b"),
            ("redis://u:my pass@h", "redis://u:my pass@h", "redis://***@h"),
            ("--urll=redis://u:p@h", "'--urll=redis://u:p@h'", "'--urll=redis://***@h'"),
            ("redis://u:a\"b@h", "\"redis://u:a\\\"b@h\"", "\"redis://***@h\""),
            ("redis://u:s3cret@h", "\"redis://u:s3c\"… (80 bytes)", "\"redis://***\"… (80 bytes)"),
            ("redis://u:s3cret@h", "redis://u:9", "redis://u:9"),
            ("a://x:y@h b://v:w@i", "b://v:w@i, a://x:y@h", "b://***@i, a://***@h"),
        ] {
            assert_eq!(without(text, &userinfos(&[given.to_owned()])), shown);
        }
    }
}
