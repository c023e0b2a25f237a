//! A proxy that breaks the wire between a client and a [`Server`] at a chosen command.
//!
//! It knows where commands and replies begin and end, so a test says "the reply to `complete` gets
//! lost" and means it. It closes, delays or holds; it never swallows bytes of a connection that
//! stays open, which TCP cannot do either.
//!
//! A script call goes by the script's name, which the proxy is told ([`Proxy::name_script`]) or
//! learns from a `SCRIPT LOAD` whose source begins `-- name: …`; any other command by its own, in
//! lower case (`blpop`, `script load`). A script that has no name yet goes by its SHA1.
//! [`ANY_SCRIPT`] stands for every script call.
//!
//! Replies are matched to commands by their order. Pub/sub breaks that order: it passes through,
//! but faults on a subscriber's own commands may strike the wrong frame.

use super::resp::{Frames, words};
use super::{Address, PATIENCE, Server};
use bytes::Bytes;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Matches every `EVAL` and `EVALSHA`.
pub const ANY_SCRIPT: &str = "*";

/// Commands that say only with their second word what they do.
const CONTAINERS: [&str; 4] = ["script", "client", "config", "function"];

/// A proxy on a port of its own. Its connections end with it.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    accepting: watch::Sender<bool>,
    listening: watch::Receiver<bool>,
    _stop: DropGuard,
}

impl Proxy {
    pub async fn in_front_of(server: &Server) -> Self {
        Self::to(server.address()).await
    }

    /// In front of whoever listens there.
    pub async fn to(upstream: Address) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared::new(upstream));
        let (accepting, orders) = watch::channel(true);
        let (state, listening) = watch::channel(true);
        let stop = CancellationToken::new();
        let accept = accept(Arc::clone(&shared), listener, address, orders, state, stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept));
        let _stop = stop.drop_guard();
        Self { shared, port: address.port(), accepting, listening, _stop }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Calls of the script with this SHA1 go by `name` from now on.
    pub fn name_script(&self, sha: &str, name: &str) {
        self.shared.state().names.insert(sha.to_ascii_lowercase(), name.to_owned());
    }

    /// Arms a fault for the next command of this name: `proxy.on("complete").drop_reply()`.
    ///
    /// Of several faults the one armed first strikes first; a command meets one at most.
    #[must_use = "nothing is armed until a fault is chosen"]
    pub fn on(&self, name: &str) -> On<'_> {
        On { proxy: self, rule: Rule { name: name.to_owned(), skip: 0, left: 1, fault: None } }
    }

    /// Disarms every fault that has not struck.
    pub fn disarm(&self) {
        self.shared.state().rules.clear();
    }

    /// Lets everything go on that is held.
    pub fn release(&self) {
        self.shared.gate.send_modify(|releases| *releases += 1);
    }

    /// Sends the requests that arrive late to the server, in order, and returns its replies as they
    /// are on the wire. They travel on a new connection: database 0, no password.
    pub async fn release_late(&self) -> Vec<String> {
        let late = std::mem::take(&mut self.shared.state().late);
        let server = dial(&self.shared.upstream).await.expect("the server accepts");
        let (read, mut write) = tokio::io::split(server);
        let mut frames = Frames::new(read);
        let mut replies = Vec::new();
        for request in late {
            write.write_all(&request).await.expect("the server reads");
            let reply = frames.next().await.expect("the server answers").expect("a reply");
            replies.push(String::from_utf8_lossy(&reply).into_owned());
        }
        replies
    }

    /// Cuts every connection; what is held on them is lost. New ones are welcome.
    pub fn cut_all(&self) {
        std::mem::take(&mut self.shared.state().connections).cancel();
    }

    /// Refuses new connections, or accepts them again; in effect on return. Leaves open ones alone.
    pub async fn refuse(&self, refuse: bool) {
        self.accepting.send_replace(!refuse);
        let mut listening = self.listening.clone();
        let in_effect = listening.wait_for(|listening| *listening != refuse);
        tokio::time::timeout(PATIENCE, in_effect).await.expect("in time").expect("proxy runs");
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.shared.state().accepted
    }

    /// Commands of this name that arrived so far, whatever became of them.
    pub fn seen(&self, name: &str) -> u64 {
        count(&self.shared.state().seen, name)
    }

    /// Faults that struck a command of this name so far. One on a reply strikes when the reply is
    /// here: the server has done its work.
    pub fn struck(&self, name: &str) -> u64 {
        count(&self.shared.state().struck, name)
    }

    /// Waits until `n` commands of this name have arrived.
    ///
    /// # Panics
    /// If that takes longer than [`PATIENCE`], as do the others.
    pub async fn wait_seen(&self, name: &str, n: u64) {
        self.wait(&format!("{n} × {name}"), |state| count(&state.seen, name) >= n).await;
    }

    /// Waits until `n` faults have struck commands of this name.
    pub async fn wait_struck(&self, name: &str, n: u64) {
        self.wait(&format!("{n} faults on {name}"), |state| count(&state.struck, name) >= n).await;
    }

    /// Waits until `n` connections were accepted.
    pub async fn wait_accepted(&self, n: u64) {
        self.wait(&format!("{n} connections"), |state| state.accepted >= n).await;
    }

    async fn wait(&self, what: &str, is_so: impl Fn(&State) -> bool) {
        // Subscribed before the first look: what changes in between is not missed.
        let mut changes = self.shared.changes.subscribe();
        let event = async {
            while !is_so(&self.shared.state()) {
                changes.changed().await.expect("the proxy holds the sender");
            }
        };
        if tokio::time::timeout(PATIENCE, event).await.is_err() {
            panic!("waited {PATIENCE:?} for {what}: {:?}", self.shared.state());
        }
    }
}

/// A fault about to be armed: by default on the next command of the name, once.
#[derive(Debug)]
pub struct On<'a> {
    proxy: &'a Proxy,
    rule: Rule,
}

impl On<'_> {
    /// Strikes the next `n` commands instead of one.
    #[must_use = "nothing is armed until a fault is chosen"]
    pub fn times(mut self, n: u64) -> Self {
        self.rule.left = n;
        self
    }

    /// Lets the next `n` commands pass first.
    #[must_use = "nothing is armed until a fault is chosen"]
    pub fn after(mut self, n: u64) -> Self {
        self.rule.skip = n;
        self
    }

    /// The server does its work, the reply is lost, the connection is closed (FIN).
    pub fn drop_reply(self) {
        self.arm(Fault::DropReply(Close::Fin));
    }

    /// As [`drop_reply`](Self::drop_reply), but the connection is reset.
    pub fn reset_reply(self) {
        self.arm(Fault::DropReply(Close::Reset));
    }

    /// The first half of the reply, then FIN.
    pub fn half_reply(self) {
        self.arm(Fault::HalfReply(Close::Fin));
    }

    /// The first half of the reply, then a reset.
    pub fn reset_half_reply(self) {
        self.arm(Fault::HalfReply(Close::Reset));
    }

    /// The reply takes this much longer, and what comes after it waits behind it.
    pub fn delay_reply(self, delay: Duration) {
        self.arm(Fault::DelayReply(delay));
    }

    /// The server does its work; the reply, and all behind it, waits for [`Proxy::release`].
    pub fn hold_reply(self) {
        self.arm(Fault::HoldReply);
    }

    /// The command, and all behind it, waits for [`Proxy::release`]. It goes to the server then
    /// even if the client has given up.
    pub fn hold_request(self) {
        self.arm(Fault::HoldRequest);
    }

    /// The connection is closed (FIN) and the server never hears of the command.
    pub fn close_before(self) {
        self.arm(Fault::CloseBefore(Close::Fin));
    }

    /// As [`close_before`](Self::close_before), but the connection is reset.
    pub fn reset_before(self) {
        self.arm(Fault::CloseBefore(Close::Reset));
    }

    /// The connection is closed, but the command is still under way: it gets to the server with
    /// [`Proxy::release_late`].
    pub fn arrive_late(self) {
        self.arm(Fault::ArriveLate);
    }

    /// The answer is this error line, e.g. `LOADING not yet`; the server never hears of the command.
    pub fn answer_error(self, error: &str) {
        self.arm(Fault::AnswerError(format!("-{}\r\n", error.trim_start_matches('-'))));
    }

    /// Command and reply travel a byte at a time.
    pub fn split(self) {
        self.arm(Fault::Split);
    }

    fn arm(mut self, fault: Fault) {
        self.rule.fault = Some(fault);
        self.proxy.shared.state().rules.push(self.rule);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    Fin,
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    CloseBefore(Close),
    ArriveLate,
    HoldRequest,
    AnswerError(String),
    DropReply(Close),
    HalfReply(Close),
    DelayReply(Duration),
    HoldReply,
    Split,
}

#[derive(Debug)]
struct Rule {
    name: String,
    skip: u64,
    left: u64,
    fault: Option<Fault>,
}

/// What the client gets next, in the order of its commands.
enum Next {
    Reply { name: String, fault: Option<Fault> },
    Error(String),
    Close(Close),
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<String, String>,
    rules: Vec<Rule>,
    seen: HashMap<String, u64>,
    struck: HashMap<String, u64>,
    accepted: u64,
    late: Vec<Bytes>,
    connections: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    upstream: Address,
    state: Mutex<State>,
    changes: watch::Sender<()>,
    gate: watch::Sender<u64>,
}

impl Shared {
    fn new(upstream: Address) -> Self {
        let state = Mutex::default();
        Self { upstream, state, changes: watch::Sender::new(()), gate: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it was held")
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changes.send_replace(());
        result
    }

    /// Names and counts a command, and says what is to befall it.
    fn arrived(&self, request: &[u8]) -> io::Result<(String, Option<Fault>)> {
        let words = words(request)?;
        Ok(self.change(|state| {
            let (name, is_script) = state.name(&words);
            for name in std::iter::once(name.as_str()).chain(is_script.then_some(ANY_SCRIPT)) {
                *state.seen.entry(name.to_owned()).or_default() += 1;
            }
            let fault = state.next_fault(&name, is_script);
            (name, fault)
        }))
    }

    fn strike(&self, name: &str) {
        self.change(|state| *state.struck.entry(name.to_owned()).or_default() += 1);
    }

    /// Counts the fault, then waits for a release that came after the count.
    async fn hold(&self, name: &str) {
        let mut gate = self.gate.subscribe();
        self.strike(name);
        // Fails only if the sender is gone, and `self` holds it.
        let _ = gate.changed().await;
    }
}

impl State {
    /// The name of a command, and whether it calls a script.
    fn name(&mut self, words: &[&[u8]]) -> (String, bool) {
        let word = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(word));
        let lower = |at: usize| word(at).unwrap_or_default().to_ascii_lowercase();
        let command = lower(0);
        match command.as_str() {
            "evalsha" | "evalsha_ro" => {
                let sha = lower(1);
                (self.names.get(&sha).cloned().unwrap_or(sha), true)
            }
            "eval" | "eval_ro" => {
                (word(1).and_then(|source| header_name(&source)).unwrap_or(command), true)
            }
            container if CONTAINERS.contains(&container) => {
                let command = format!("{container} {}", lower(1));
                if command == "script load" {
                    self.learn(&word(2).unwrap_or_default());
                }
                (command, false)
            }
            _ => (command, false),
        }
    }

    fn learn(&mut self, source: &str) {
        if let Some(name) = header_name(source) {
            let sha = redis::Script::new(source).get_hash().to_owned();
            self.names.entry(sha).or_insert(name);
        }
    }

    fn next_fault(&mut self, name: &str, is_script: bool) -> Option<Fault> {
        let matches = |rule: &Rule| rule.name == name || is_script && rule.name == ANY_SCRIPT;
        for rule in self.rules.iter_mut().filter(|rule| rule.left > 0 && matches(rule)) {
            if rule.skip == 0 {
                rule.left -= 1;
                return rule.fault.clone();
            }
            rule.skip -= 1;
        }
        None
    }
}

/// `name` of a script that begins with the comment `-- name: …`.
fn header_name(source: &str) -> Option<String> {
    let comment = source.lines().next()?.strip_prefix("--")?;
    let (name, _) = comment.split_once(':')?;
    let name = name.trim();
    (!name.is_empty() && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}

fn count(counts: &HashMap<String, u64>, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

async fn accept(
    shared: Arc<Shared>,
    mut listener: TcpListener,
    address: SocketAddr,
    mut orders: watch::Receiver<bool>,
    state: watch::Sender<bool>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            biased;
            order = orders.wait_for(|accepting| !accepting) => {
                if order.is_err() { return }
            }
            connection = listener.accept() => {
                if let Ok((client, _)) = connection {
                    let serve = serve(Arc::clone(&shared), client);
                    tokio::spawn(stop.clone().run_until_cancelled_owned(serve));
                }
                continue;
            }
        }
        drop(listener);
        // A socket that is bound and does not listen refuses, and keeps the port from others.
        let socket = reserve(address).await.expect("the port is still ours");
        state.send_replace(false);
        if orders.wait_for(|accepting| *accepting).await.is_err() {
            return;
        }
        listener = socket.listen(1024).expect("a bound socket can listen");
        state.send_replace(true);
    }
}

async fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    loop {
        let socket = TcpSocket::new_v4()?;
        // The old connections on this port may still be open.
        socket.set_reuseaddr(true)?;
        match socket.bind(address) {
            // A child that is just being spawned has a copy of the listener until it executes.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            bound => return bound.map(|()| socket),
        }
    }
}

async fn serve(shared: Arc<Shared>, mut client: TcpStream) {
    let cut = shared.change(|state| {
        state.accepted += 1;
        state.connections.clone()
    });
    let close = tokio::select! {
        biased;
        () = cut.cancelled() => Close::Fin,
        close = exchange(&shared, &mut client) => close.unwrap_or(Close::Fin),
    };
    match close {
        Close::Reset => client.set_zero_linger().expect("an open socket takes options"),
        Close::Fin => finish(client).await,
    }
}

/// Closes with FIN. Closing a socket with unread bytes would send a reset: reads them first.
async fn finish(mut client: TcpStream) {
    if client.shutdown().await.is_ok() {
        let rest = async { while matches!(client.read(&mut [0; 4096]).await, Ok(1..)) {} };
        // A client that leaves its end open gets its reset now.
        let _ = tokio::time::timeout(Duration::from_secs(1), rest).await;
    }
}

/// Runs a connection until it is to be closed, and says how.
async fn exchange(shared: &Shared, client: &mut TcpStream) -> io::Result<Close> {
    client.set_nodelay(true)?;
    let server = dial(&shared.upstream).await?;
    let (from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = tokio::io::split(server);
    let (due, expected) = unbounded_channel();
    let requests = async {
        // An error is the end of the stream, as is the client's FIN: replies under way still go out.
        let _ = requests(shared, Frames::new(from_client), &mut to_server, due).await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        close = replies(shared, Frames::new(from_server), &mut to_client, expected) => close,
        never = requests => match never {},
    }
}

/// Passes requests on. What is due to the client is noted *before* the server hears of it, so that
/// no reply comes unexpected.
async fn requests(
    shared: &Shared,
    mut client: Frames<impl AsyncRead + Unpin>,
    server: &mut (impl AsyncWrite + Unpin),
    due: UnboundedSender<Next>,
) -> io::Result<()> {
    let promise = |next| due.send(next).map_err(io::Error::other);
    while let Some(request) = client.next().await? {
        let (name, fault) = shared.arrived(&request)?;
        match fault {
            Some(Fault::CloseBefore(close)) => {
                shared.strike(&name);
                return promise(Next::Close(close));
            }
            Some(Fault::ArriveLate) => {
                shared.state().late.push(request);
                shared.strike(&name);
                return promise(Next::Close(Close::Fin));
            }
            Some(Fault::AnswerError(line)) => {
                shared.strike(&name);
                promise(Next::Error(line))?;
                continue;
            }
            Some(Fault::HoldRequest) => shared.hold(&name).await,
            _ => {}
        }
        let split = fault == Some(Fault::Split);
        promise(Next::Reply { name, fault })?;
        send(server, &request, split).await?;
    }
    Ok(())
}

/// Passes replies on. A client that is gone does not end it: the server finishes what it was sent.
async fn replies(
    shared: &Shared,
    mut server: Frames<impl AsyncRead + Unpin>,
    client: &mut (impl AsyncWrite + Unpin),
    mut expected: UnboundedReceiver<Next>,
) -> io::Result<Close> {
    loop {
        let next = tokio::select! {
            biased;
            next = expected.recv() => next,
            // A message of pub/sub, or the server's end.
            frame = server.next() => {
                let Some(frame) = frame? else { return Ok(Close::Fin) };
                let _ = send(client, &frame, false).await;
                continue;
            }
        };
        let (name, fault) = match next {
            None => return Ok(Close::Fin),
            Some(Next::Close(close)) => return Ok(close),
            Some(Next::Error(line)) => {
                let _ = send(client, line.as_bytes(), false).await;
                continue;
            }
            Some(Next::Reply { name, fault }) => (name, fault),
        };
        let Some(reply) = next_reply(&mut server, client).await? else { return Ok(Close::Fin) };
        if let Some(close) = deliver(shared, client, &reply, &name, fault).await {
            return Ok(close);
        }
    }
}

/// The next frame that answers a command; pushes of RESP3 on the way are passed on.
async fn next_reply(
    server: &mut Frames<impl AsyncRead + Unpin>,
    client: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Option<Bytes>> {
    loop {
        match server.next().await? {
            Some(push) if push.starts_with(b">") => {
                let _ = send(client, &push, false).await;
            }
            reply => return Ok(reply),
        }
    }
}

/// Hands a reply to the client as the fault wants it; how to close, if that is the end.
async fn deliver(
    shared: &Shared,
    client: &mut (impl AsyncWrite + Unpin),
    reply: &[u8],
    name: &str,
    fault: Option<Fault>,
) -> Option<Close> {
    match fault {
        Some(Fault::DropReply(close)) => {
            shared.strike(name);
            return Some(close);
        }
        Some(Fault::HalfReply(close)) => {
            shared.strike(name);
            let _ = send(client, &reply[..reply.len() / 2], false).await;
            return Some(close);
        }
        Some(Fault::DelayReply(delay)) => {
            shared.strike(name);
            tokio::time::sleep(delay).await;
        }
        Some(Fault::HoldReply) => shared.hold(name).await,
        Some(Fault::Split) => {
            shared.strike(name);
            let _ = send(client, reply, true).await;
            return None;
        }
        // It struck on the way to the server.
        _ => {}
    }
    let _ = send(client, reply, false).await;
    None
}

async fn send(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8], split: bool) -> io::Result<()> {
    let size = if split { 1 } else { bytes.len().max(1) };
    for chunk in bytes.chunks(size) {
        to.write_all(chunk).await?;
        to.flush().await?;
        if split {
            // Lets the other side read before the next byte.
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn dial(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tcp(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}
