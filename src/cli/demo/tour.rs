//! Looking at the keys: the lines that one would type, and what they answer.

use super::{
    check::{Accepted, Facts},
    place::Place,
};
use crate::{args::Global, fail::Failure, out, scratch};
use redis::{ConnectionAddr, ConnectionInfo, Value};
use tokio::process::Command;

/// Lines of an answer that are shown.
const SHOWN: usize = 40;

pub(super) async fn show(global: &Global, place: &Place, facts: &Facts) -> Result<(), Failure> {
    out::talk(
        global,
        "\nEverything is in plain Redis keys. This is how to look at them, and what they\n\
         show now; the demo's own keys go when it ends.",
    );
    let (info, args) = (place.connection_info()?, server_args(place)?);
    for look in looks(place, facts) {
        out::line(&format!("\n# {}\n$ {}", look.why, look.typed(&args)))?;
        let answer = match look.by_redis_cli(&info, &args).await {
            Ok(answer) => answer,
            // There is no redis-cli.
            Err(_) => look.by_connection(place).await?,
        };
        for line in answer.lines().take(SHOWN) {
            out::line(&out::visible(&out::cut(line, 240)))?;
        }
    }
    Ok(())
}

/// A command that looks at something.
struct Look {
    why: &'static str,
    /// Shown as it is, not quoted and escaped.
    raw: bool,
    command: Vec<String>,
}

fn looks(place: &Place, facts: &Facts) -> Vec<Look> {
    let look = |why, raw, command: &[&str]| Look {
        why,
        raw,
        command: command.iter().map(ToString::to_string).collect(),
    };
    let meta = place.key("webhooks", "meta");
    let completed = place.key("webhooks", "completed");
    let mut looks = vec![
        look("a queue's counters and settings", false, &["HGETALL", &meta]),
        look("how many jobs are completed and kept", false, &["ZCARD", &completed]),
    ];
    let of = |(id, job): (&String, &Accepted), key| [place.key(&job.queue, key), id.clone()];
    if let Some(job) = facts.crashed() {
        let [key, id] = of(job, "jobs");
        looks.push(look("a job of the killed worker: its record", true, &["HGET", &key, &id]));
        let [key, id] = of(job, "errors");
        looks.push(look("and what happened to it", true, &["HGET", &key, &id]));
    }
    if let Some(job) = facts.exhausted() {
        let [key, id] = of(job, "errors");
        looks.push(look("a job that failed too often", true, &["HGET", &key, &id]));
        let [key, id] = of(job, "endings");
        looks.push(look("and how it ended", true, &["HGET", &key, &id]));
    }
    looks
}

impl Look {
    fn format(&self) -> &'static str {
        if self.raw { "--raw" } else { "--no-raw" }
    }

    /// The line to type. Where there is a password, redis-cli takes it from `REDISCLI_AUTH`.
    fn typed(&self, args: &[String]) -> String {
        let mut words = vec!["redis-cli".to_owned()];
        words.extend_from_slice(args);
        words.extend(self.raw.then(|| "--raw".to_owned()));
        words.extend(self.command.iter().map(|word| quoted(word)));
        words.join(" ")
    }

    async fn by_redis_cli(
        &self,
        info: &ConnectionInfo,
        args: &[String],
    ) -> std::io::Result<String> {
        let mut cli = Command::new("redis-cli");
        cli.args(args).arg(self.format()).args(&self.command);
        if let Some(password) = info.redis_settings().password() {
            cli.env("REDISCLI_AUTH", password);
        }
        let output = cli.output().await?;
        if !output.status.success() {
            return Err(std::io::Error::other("redis-cli failed"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn by_connection(&self, place: &Place) -> anyhow::Result<String> {
        let mut command = redis::cmd(&self.command[0]);
        command.arg(&self.command[1..]);
        Ok(text(&command.query_async(&mut place.connection().await?).await?))
    }
}

fn server_args(place: &Place) -> anyhow::Result<Vec<String>> {
    let info = place.connection_info()?;
    let mut args = match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            vec!["-h".to_owned(), host.clone(), "-p".to_owned(), port.to_string()]
        }
        ConnectionAddr::Unix(path) => vec!["-s".to_owned(), path.display().to_string()],
        _ => anyhow::bail!("a way to the server that redis-cli does not know"),
    };
    if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        args.push("--tls".to_owned());
        for (name, flag) in [("ca", "--cacert"), ("cert", "--cert"), ("key", "--key")] {
            let file = scratch::tls_file(&place.url, name);
            args.extend(file.into_iter().flat_map(|file| [flag.to_owned(), file]));
        }
    }
    let settings = info.redis_settings();
    if let Some(user) = settings.username() {
        args.extend(["--user".to_owned(), user.to_owned()]);
    }
    if settings.db() != 0 {
        args.extend(["-n".to_owned(), settings.db().to_string()]);
    }
    Ok(args)
}

/// A word for the shell: braces and the like would mean something to it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-/".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn text(value: &Value) -> String {
    match value {
        Value::Nil => "(nil)".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Map(pairs) => {
            let pair = |(name, value): &(Value, Value)| format!("{} {}", text(name), text(value));
            pairs.iter().map(pair).collect::<Vec<_>>().join("\n")
        }
        other => format!("{other:?}"),
    }
}
