//! The documentation says what is so: the tests that it names exist, and its commands run.

mod support;

use sprag::{
    Client, Codec, Envelope, JobId, Kind, QueueName, State, Store, Timestamp, When, WorkerId,
    store::{Archive, ArchiveReason, Held, Pace, Retry, WorkerInfo, WorkerState},
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use support::{Address, PATIENCE, Server};

const LEASE: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All Rust files under a folder.
fn sources(folder: PathBuf, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(path).expect("UTF-8"));
        }
    }
}

/// The texts in backticks that stand on one line.
fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Names of tests: `crate::module`, `crate::module::test`, `module::`, or a test's name alone.
fn is_test_name(text: &str) -> bool {
    let text = text.strip_suffix("::").map_or(text.to_owned(), |module| format!("any::{module}"));
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    text.split("::").all(is_word)
        && (text.contains("::") || text.bytes().filter(|b| *b == b'_').count() >= 3)
}

fn exists(name: &str, all: &[String]) -> bool {
    let function = |text: &str, name: &str| text.contains(&format!("fn {name}("));
    match *name.split("::").collect::<Vec<_>>() {
        [module, ""] => ["contract", "faults", "worker"]
            .iter()
            .any(|folder| root().join(format!("tests/{folder}/{module}.rs")).is_file()),
        [test] => all.iter().any(|text| function(text, test)),
        [folder, module] => root().join(format!("tests/{folder}/{module}.rs")).is_file(),
        [folder, module, test] => {
            let text = fs::read_to_string(root().join(format!("tests/{folder}/{module}.rs")));
            text.is_ok_and(|text| function(&text, test))
        }
        _ => false,
    }
}

#[test]
fn every_test_that_the_documentation_names_exists() {
    let mut all = Vec::new();
    sources(root().join("tests"), &mut all);
    sources(root().join("src"), &mut all);
    let readme = read("README.md");
    let table: String = readme
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| format!("{line}\n"))
        .collect();
    let guarantees = read("docs/guarantees.md");
    for (page, text) in [("README.md", &table), ("docs/guarantees.md", &guarantees)] {
        let names: Vec<_> = in_backticks(text).filter(|name| is_test_name(name)).collect();
        assert!(names.len() >= 7, "{page} names its tests: {names:?}");
        let missing: Vec<_> = names.iter().filter(|name| !exists(name, &all)).collect();
        assert!(missing.is_empty(), "{page} names tests that do not exist: {missing:?}");
    }
}

#[test]
fn every_promise_names_a_test() {
    let page = read("docs/guarantees.md");
    let promised = page.split("## What is not promised").next().expect("a part");
    let is_start = |line: &str| {
        let number = line.split_once(". ").map(|(number, _)| number);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut promises: Vec<String> = Vec::new();
    for line in promised.lines() {
        if is_start(line) {
            promises.push(String::new());
        }
        if let Some(promise) = promises.last_mut() {
            promise.push_str(&format!("{line}\n"));
        }
    }
    for (i, promise) in promises.iter().enumerate() {
        assert!(promise.starts_with(&format!("{}. ", i + 1)), "numbered in order: {promise}");
        assert!(in_backticks(promise).any(is_test_name), "defended by no test: {promise}");
    }
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let pages = fs::read_dir(root().join("docs")).expect("docs/");
    let mut pages: Vec<_> = pages.map(|page| page.expect("an entry").path()).collect();
    pages.extend(["README.md", "deploy/kubernetes/README.md"].map(|page| root().join(page)));
    for page in pages {
        let text = fs::read_to_string(&page).expect("UTF-8");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://");
            let target = page.parent().expect("a folder").join(file);
            assert!(elsewhere || target.exists(), "{}: {link}", page.display());
        }
    }
}

/// What `docs/redis-cli.md` and `docs/operations.md` look at: waiting jobs, one active and its worker,
/// one retry, one archived, and a fingerprint in quarantine, with its job.
struct Scene {
    server: Server,
    client: Client,
    queue: QueueName,
}

impl Scene {
    async fn new() -> Self {
        let server = Server::start().await;
        let client = Client::connect(&server.url()).expect("client");
        Self { server, client, queue: QueueName::new("email").expect("queue") }
    }

    fn store(&self) -> &dyn Store {
        &**self.client.store()
    }

    async fn enqueue(&self, id: &str, run_at: When) {
        let kind = Kind::new("email:welcome").expect("kind");
        let job = Envelope::builder(self.queue.clone(), kind).id(JobId::new(id).expect("id"));
        let job = job.payload(format!("hello {id}"), Codec::Raw).run_at(run_at).build();
        let outcomes = self.store().enqueue(&self.queue, &[job.expect("valid")]).await;
        outcomes.expect("enqueue").remove(0).expect("admitted");
    }

    async fn claim(&self, lease: Duration) -> Held {
        let worker = WorkerId::new("mailer:1").expect("worker");
        let claim = self.store().claim(&self.queue, &worker, 1, lease).await.expect("claim");
        let job = claim.jobs.first().expect("something to claim");
        Held { id: job.id.clone(), fence: job.fence }
    }

    /// Kills its holder until the fingerprint is in quarantine.
    async fn poison(&self) {
        self.enqueue("poison-1", When::Now).await;
        let settings = [sprag::store::Setting::CrashLimit(Some(1))];
        self.store().set(&self.queue, &settings).await.expect("set");
        self.claim(Duration::from_millis(100)).await;
        let id = JobId::new("poison-1").expect("id");
        let started = std::time::Instant::now();
        while self.store().show(&self.queue, &id).await.expect("shown").state != State::Quarantined
        {
            assert!(started.elapsed() < PATIENCE, "never quarantined");
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.store().sweep(&self.queue, Pace::Now).await.expect("sweep");
        }
    }

    async fn play(&self) {
        self.poison().await;
        self.enqueue("failed-1", When::Now).await;
        let (held, delay) = (self.claim(LEASE).await, LEASE);
        let failed = Retry { held, delay, error: "no route to host".into() };
        self.store().retry(&self.queue, &[failed]).await.expect("retry");
        self.enqueue("archived-1", When::Now).await;
        let (held, reason) = (self.claim(LEASE).await, ArchiveReason::Discarded);
        let given_up = Archive { held, reason, error: Some("no such user".into()) };
        self.store().archive(&self.queue, &[given_up]).await.expect("archive");
        self.enqueue("running-1", When::Now).await;
        self.claim(LEASE).await;
        for id in ["welcome-1", "welcome-2", "welcome-3"] {
            self.enqueue(id, When::Now).await;
        }
        self.enqueue("later-1", When::In(LEASE)).await;
        self.store().beat(&mailer()).await.expect("beat");
    }
}

/// Who holds the active job.
fn mailer() -> WorkerInfo {
    WorkerInfo {
        id: "mailer:1".to_owned(),
        queues: vec!["email".to_owned()],
        host: "mailer".to_owned(),
        pid: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        concurrency: 10,
        busy: 1,
        state: WorkerState::Running,
        jobs: Vec::new(),
        started_at: Timestamp::now(),
        seen_at: Timestamp::now(),
        gone: false,
    }
}

/// The lines of a page's `sh` blocks.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.filter_map(|block| block.strip_prefix("sh\n")).flat_map(str::lines);
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A shell in which a page's commands mean the scene: `redis-cli` its server, `sprag` this program.
struct Shell {
    path: tempfile::TempDir,
    url: String,
}

impl Shell {
    /// None: there is no `redis-cli`, or no `sprag` in this build.
    fn on(server: &Server, page: &str) -> Option<Self> {
        let skipped = |why| {
            eprintln!("!!! SKIPPED: {why}; {page} is not tried");
            None
        };
        let Ok(found) = Command::new("sh").args(["-c", "command -v redis-cli"]).output() else {
            return skipped("no sh");
        };
        let redis_cli = String::from_utf8(found.stdout).expect("a path");
        if redis_cli.is_empty() {
            return skipped("no redis-cli on the PATH");
        }
        let Some(sprag) = option_env!("CARGO_BIN_EXE_sprag") else {
            return skipped("built without the feature cli");
        };
        let Address::Unix(socket) = server.address() else { panic!("the server has a socket") };
        let path = tempfile::tempdir().expect("a directory");
        // `-e`: an error reply is a failure.
        let redis_cli = format!("{} -e -s '{}'", redis_cli.trim(), socket.display());
        for (name, exec) in [("redis-cli", redis_cli), ("sprag", format!("'{sprag}'"))] {
            let file = path.path().join(name);
            fs::write(&file, format!("#!/bin/sh\nexec {exec} \"$@\"\n")).expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("executable");
        }
        Some(Self { path, url: server.url() })
    }

    /// Runs a line, which must succeed and say something.
    fn run(&self, line: &str) {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.path.path().display());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("PATH", path).stdin(Stdio::null());
        shell.env("SPRAG_REDIS_URL", &self.url).env("XDG_CONFIG_HOME", "/no/such/folder");
        for name in ["SPRAG_NAMESPACE", "SPRAG_CONFIG", "SPRAG_REDIS_PASSWORD"] {
            shell.env_remove(name);
        }
        let ran = shell.current_dir(self.path.path()).output().expect("sh");
        let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{line}: {said}");
        assert!(!said.trim().is_empty(), "{line} says nothing");
    }
}

/// Runs all commands of a page, in their order, on a scene of its own.
async fn try_page(page: &str, programs: &[&str]) {
    let scene = Scene::new().await;
    scene.play().await;
    let Some(shell) = Shell::on(&scene.server, page) else { return };
    let commands = commands(&read(page));
    assert!(commands.len() > 30, "{page} has its commands: {commands:?}");
    for command in commands {
        let program = command.split(' ').next().unwrap_or_default();
        assert!(programs.contains(&program), "{page}: {command}");
        shell.run(&command);
    }
}

#[tokio::test]
async fn every_redis_cli_command_of_the_tour_answers() {
    try_page("docs/redis-cli.md", &["redis-cli"]).await;
}

#[tokio::test]
async fn every_command_of_the_runbook_answers() {
    try_page("docs/operations.md", &["redis-cli", "sprag"]).await;
}

/// The rules of each role as `docs/acl.md` has them.
fn published_rules() -> String {
    let of = |role: sprag::store::Role| {
        let rules = role.rules(&sprag::Namespace::default());
        let (commands, places): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| rule.starts_with('+'));
        let lines: Vec<_> = commands.chunks(10).map(|line| line.join(" ")).collect();
        format!("### {role}\n\n```text\n{}\n{}\n```\n", places.join(" "), lines.join("\n"))
    };
    sprag::store::Role::ALL.map(of).join("\n")
}

#[test]
fn the_published_acl_rules_are_those_of_the_roles() {
    let (begin, end) = ("<!-- rules -->\n", "<!-- end -->");
    let page = read("docs/acl.md");
    let (before, rest) = page.split_once(begin).expect("where the rules begin");
    let (_, after) = rest.split_once(end).expect("where they end");
    let made = format!("{before}{begin}\n{}\n{end}{after}", published_rules());
    if std::env::var_os("SPRAG_WRITE_DOCS").is_some() {
        fs::write(root().join("docs/acl.md"), &made).expect("docs/ is writable");
    }
    let advice = "docs/acl.md is old: SPRAG_WRITE_DOCS=1 cargo test --test docs acl";
    assert!(read("docs/acl.md") == made, "{advice}");
}
