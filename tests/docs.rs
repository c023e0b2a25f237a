//! The documentation says what is so: the tests that it names exist, and its commands run.

mod support;

use sprag::{
    Client, Codec, Envelope, JobId, Kind, QueueName, State, Store, When, WorkerId,
    store::{Archive, ArchiveReason, Held, Pace, Retry},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
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
    pages.push(root().join("README.md"));
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

/// What `docs/redis-cli.md` looks at: waiting jobs, one active, one retry, one archived, and a
/// fingerprint in quarantine, with its job.
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
    }
}

/// The lines of a page's `sh` blocks.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.filter_map(|block| block.strip_prefix("sh\n")).flat_map(str::lines);
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_redis_cli_command_of_the_tour_answers() {
    if Command::new("redis-cli").arg("--version").output().is_err() {
        eprintln!("!!! SKIPPED: no redis-cli on the PATH; docs/redis-cli.md is not tried");
        return;
    }
    let scene = Scene::new().await;
    scene.play().await;
    let Address::Unix(socket) = scene.server.address() else { panic!("the server has a socket") };
    let commands = commands(&read("docs/redis-cli.md"));
    assert!(commands.len() > 30, "the page has its commands: {commands:?}");
    for command in commands {
        let arguments = command.strip_prefix("redis-cli ").expect("only redis-cli");
        // `-e`: an error reply is a failure.
        let run = format!("redis-cli -e -s \"$0\" {arguments}");
        let run = Command::new("sh").arg("-c").arg(run).arg(&socket).output().expect("sh");
        let said = String::from_utf8_lossy(&run.stdout);
        let failed = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{command}: {said}{failed}");
        assert!(!said.trim().is_empty(), "{command} says nothing");
    }
}
