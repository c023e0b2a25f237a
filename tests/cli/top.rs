//! `top`, in a pseudo-terminal.

use crate::{
    program::{Program, SPRAG},
    support::PATIENCE,
};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use sprag::{Client, State};
use std::{
    io::{Read, Write},
    num::NonZero,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// The program on a terminal of its own, whose screen is read.
struct Top {
    screen: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    /// As long as it is open, the terminal's settings can be asked for.
    _slave: Box<dyn SlavePty + Send>,
    before: String,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn some(n: u16) -> NonZero<u16> {
    NonZero::new(n).expect("more than zero")
}

fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("settings"))
}

impl Top {
    fn start(url: &str) -> Self {
        let pair = native_pty_system().openpty(size(24, 100)).expect("a pseudo-terminal");
        let before = settings(&*pair.master);
        let mut command = CommandBuilder::new(SPRAG);
        command.args(["--url", url, "top", "--interval", "100ms"]);
        command.env("TERM", "xterm-256color");
        command.env("XDG_CONFIG_HOME", "/no/such/folder");
        for name in ["NO_COLOR", "SPRAG_NAMESPACE", "SPRAG_CONFIG", "SPRAG_REDIS_PASSWORD"] {
            command.env_remove(name);
        }
        let child = pair.slave.spawn_command(command).expect("the program runs");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(some(24), some(100), 0)));
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let parser = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                parser.lock().expect("no panic").process(&buffer[..read]);
            }
        });
        let keys = pair.master.take_writer().expect("a writer");
        Self { screen, keys, child, master: pair.master, _slave: pair.slave, before }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
        self.keys.flush().expect("it reads");
    }

    fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    /// Waits until the screen shows this.
    #[track_caller]
    fn shows(&self, what: &str) {
        let started = Instant::now();
        while !self.text().contains(what) {
            assert!(started.elapsed() < PATIENCE, "no {what:?} in\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn resize(&self, rows: u16, cols: u16) {
        self.screen.lock().expect("no panic").screen_mut().set_size(some(rows), some(cols));
        self.master.resize(size(rows, cols)).expect("resized");
    }

    /// It ends, as a success, and the terminal is what it was.
    #[track_caller]
    fn ends_clean(mut self) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.exit_code(), 0, "{}", self.text());
        let clean = || {
            let parser = self.screen.lock().expect("no panic");
            !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
        };
        while !clean() {
            assert!(started.elapsed() < PATIENCE, "alternate screen or hidden cursor");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(settings(&*self.master), self.before);
    }
}

fn fill(sprag: &Program) {
    for id in ["x", "y", "z"] {
        sprag.object(&["enqueue", "email", "email:welcome", "{\"user\":7}", "--id", id]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_leads_to_a_job_and_cancels_it() {
    let sprag = Program::start().await;
    fill(&sprag);
    let mut top = Top::start(&sprag.server.url());
    top.shows("1 queue: 3 pending");
    top.press("\r");
    top.shows("[pending 3]");
    // The counts are known before the jobs are.
    top.shows("page 1: 3 jobs");
    top.press("j\r");
    top.shows("email > y");
    top.shows("10 bytes; v shows it");
    top.press("v");
    top.shows("{\"user\":7}");
    top.press("c");
    top.shows("cancel job y of queue email? (y/n)");
    top.press("n");
    top.shows("not done");
    top.press("c");
    top.shows("cancel job y of queue email? (y/n)");
    top.press("y");
    top.shows("cancel job y of queue email: done");
    top.shows("cancelled (operator)");
    let inspector = Client::connect(&sprag.server.url()).expect("a url").inspector();
    let state = async |id: &str| inspector.job("email", id).await.expect("there").state;
    assert_eq!((state("y").await, state("x").await), (State::Cancelled, State::Pending));
    top.resize(10, 40);
    top.shows("? help  q back");
    top.press("q");
    top.shows("< pending 2 >");
    top.press("p");
    top.shows("pause queue email? (y/n)");
    top.press("y");
    top.shows("PAUSED");
    assert!(inspector.queue("email").await.expect("there").paused);
    top.press("qq");
    top.ends_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_gives_the_terminal_back_at_control_c_and_sigterm() {
    let sprag = Program::start().await;
    let mut top = Top::start(&sprag.server.url());
    top.shows("there is no queue");
    top.press("\u{3}");
    top.ends_clean();
    let top = Top::start(&sprag.server.url());
    top.shows("there is no queue");
    let pid = top.child.process_id().expect("it runs").to_string();
    assert!(Command::new("kill").arg(pid).status().expect("kill runs").success());
    top.ends_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_gives_the_terminal_back_while_it_is_stopped_and_at_sigquit() {
    let sprag = Program::start().await;
    let top = Top::start(&sprag.server.url());
    top.shows("there is no queue");
    let pid = top.child.process_id().expect("it runs").to_string();
    let kill = |signal: &str| {
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
    };
    kill("-TSTP");
    let is_back = || {
        let parser = top.screen.lock().expect("no panic");
        !parser.screen().alternate_screen() && !parser.screen().hide_cursor()
    };
    let started = Instant::now();
    while !is_back() || settings(&*top.master) != top.before {
        assert!(started.elapsed() < PATIENCE, "it keeps the terminal");
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may not have stopped yet.
    while is_back() {
        assert!(started.elapsed() < PATIENCE, "it does not go on");
        kill("-CONT");
        std::thread::sleep(Duration::from_millis(10));
    }
    top.shows("there is no queue");
    kill("-QUIT");
    top.ends_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_ends_with_its_terminal() {
    let sprag = Program::start().await;
    let pair = native_pty_system().openpty(size(24, 100)).expect("a pseudo-terminal");
    let mut command = CommandBuilder::new(SPRAG);
    command.args(["--url", &sprag.server.url(), "top"]);
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command).expect("the program runs");
    drop(pair.slave);
    let (mut output, mut seen) = (pair.master.try_clone_reader().expect("a reader"), Vec::new());
    while !String::from_utf8_lossy(&seen).contains("queue") {
        let mut buffer = [0; 4_096];
        let read = output.read(&mut buffer).expect("it writes");
        seen.extend(&buffer[..read]);
    }
    drop((output, pair.master));
    let code = child.wait().expect("a child").exit_code();
    assert!(code <= 1, "{code}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_refuses_a_terminal_that_cannot_be_drawn_on() {
    let sprag = Program::start().await;
    for name in ["dumb", ""] {
        let pair = native_pty_system().openpty(size(24, 100)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(SPRAG);
        command.args(["--url", &sprag.server.url(), "top"]);
        command.env("TERM", name);
        let mut child = pair.slave.spawn_command(command).expect("the program runs");
        assert_eq!(child.wait().expect("a child").exit_code(), 2, "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_waits_for_a_redis_that_went_away() {
    let mut sprag = Program::start().await;
    fill(&sprag);
    let mut top = Top::start(&sprag.server.url());
    top.shows("1 queue: 3 pending");
    sprag.server.kill();
    top.shows("trying again");
    top.shows("1 queue: 3 pending");
    sprag.server.restart().await;
    top.shows("there is no queue");
    top.press("q");
    top.ends_clean();
}

#[tokio::test]
async fn top_needs_a_terminal() {
    let sprag = Program::start().await;
    let error = sprag.error(2, &["top"]);
    let message = error["message"].as_str().expect("a text");
    assert!(message.contains("is no terminal; must be one"), "{message}");
}
