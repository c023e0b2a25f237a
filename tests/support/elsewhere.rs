//! A suite, run on another kind of server than its own: the test starts the rig, and then its own
//! program once more, for the cases alone.

use super::{Cluster, Sentinels, Server, TlsServer, ground};
use std::process::Stdio;
use tokio::process::Command;

/// A run of cases on a server that they share.
#[derive(Debug)]
#[must_use = "nothing runs before `passes`"]
pub struct Elsewhere {
    url: String,
    look: Vec<String>,
    skip: Vec<&'static str>,
    env: Vec<(&'static str, String)>,
}

impl Elsewhere {
    /// By this URL, whatever the server says of itself.
    pub fn at(url: String, server: &Server) -> Self {
        Self { url, look: vec![server.own_url()], skip: Vec::new(), env: Vec::new() }
    }

    pub fn server(server: &Server) -> Self {
        Self::at(server.url(), server)
    }

    /// As this user of a server on TCP.
    pub fn user(server: &Server, user: &str, password: &str) -> Self {
        Self::at(format!("redis://{user}:{password}@127.0.0.1:{}", server.port()), server)
    }

    pub fn tls(tls: &TlsServer) -> Self {
        Self::at(tls.url(), &tls.server)
    }

    /// The master is looked at; it is to stay the master.
    pub async fn sentinels(all: &Sentinels) -> Self {
        let master = all.master().await.expect("there is a master");
        Self::at(all.url(), &all.servers[master])
    }

    /// All nodes are looked at; their slots are to stay.
    pub fn cluster(cluster: &Cluster) -> Self {
        let look = cluster.nodes.iter().map(|node| node.server.own_url()).collect();
        Self { url: cluster.url(), look, skip: Vec::new(), env: Vec::new() }
    }

    /// Cases that cannot be tried there.
    pub fn skip(mut self, cases: &[&'static str]) -> Self {
        self.skip.extend(cases);
        self
    }

    pub fn env(mut self, name: &'static str, value: impl ToString) -> Self {
        self.env.push((name, value.to_string()));
        self
    }

    /// Runs the cases whose path has this in it, and asserts that all pass, and how many at least.
    pub async fn passes(self, filter: &str, at_least: usize) {
        let mut run = Command::new(std::env::current_exe().expect("a program"));
        // Each case mostly waits for the server.
        run.args([filter, "--test-threads", "4"]);
        for case in &self.skip {
            run.args(["--skip", case]);
        }
        run.env(ground::SERVER, &self.url).env(ground::LOOK, self.look.join(" "));
        run.envs(self.env).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).kill_on_drop(true);
        let run = run.output().await.expect("the program runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{}", failures(&said));
        let passed = passed(&said).unwrap_or_else(|| panic!("how many passed?\n{said}"));
        assert!(passed >= at_least, "only {passed} passed");
    }
}

/// What the first of the failed cases had to say.
fn failures(said: &str) -> String {
    let failures = said.split_once("\nfailures:\n").map_or(said, |(_, failures)| failures);
    let shown: Vec<&str> = failures.lines().take(100).collect();
    let result = said.lines().rfind(|line| line.starts_with("test result"));
    format!("{}\n…\n{}", shown.join("\n"), result.unwrap_or("it ended before its time"))
}

/// Of `test result: ok. 12 passed; …`.
fn passed(said: &str) -> Option<usize> {
    let (_, result) = said.split_once("test result: ok. ")?;
    result.split(' ').next()?.parse().ok()
}
