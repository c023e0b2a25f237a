"""The peers: how each is started, and what in Redis says how many of its jobs are not settled.

`unsettled` counts jobs that wait or run. What waits is asked for before what runs: a job moves from
there to here, so that none is missed between the two questions.
"""
import hashlib
import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
BINARIES = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")) / "release"


@dataclass
class Peer:
    name: str
    command: list
    unsettled: Callable
    env: dict = field(default_factory=dict)
    max_backlog: int = 400_000
    # At the library's own polling: measured only where that matters, at latency and at rest.
    defaults: bool = False

    def start(self, redis, *arguments):
        env = {**os.environ, **self.env, "PEER_REDIS": redis.url}
        return subprocess.Popen([*map(str, self.command), *map(str, arguments)], env=env, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, redis, *arguments, patience):
        """A command that ends by itself; its answer."""
        with Running(self.start(redis, *arguments), patience) as running:
            return running.line()


class Running:
    """A process of a peer, killed by its handle when it is not needed or patience is at an end."""

    def __init__(self, process, patience):
        self.process = process
        self.alarm = threading.Timer(patience, process.kill)
        self.deadline = time.time() + patience

    def __enter__(self):
        self.alarm.start()
        return self

    def __exit__(self, *_):
        self.alarm.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"no answer from {' '.join(self.process.args)}")
        return json.loads(line)

    def close(self):
        """Tells it to end; its last line."""
        self.process.stdin.close()
        return self.line()


def headgate(r):
    entered, exited = r.call("HMGET", "bench:enqueue:default", "entered", "exited")
    return int(entered or 0) - int(exited or 0)


def sidekiq(r):
    # It has no acknowledgement. The nearest is the entry of a running job, for the web page, which it deletes.
    return r.int("LLEN", "queue:default") + sum(r.int("HLEN", key) for key in r.call("KEYS", "*:work"))


def bullmq(r):
    return r.int("LLEN", "bull:bench:wait") + r.int("LLEN", "bull:bench:active")


def asynq(r):
    return r.int("LLEN", "asynq:{default}:pending") + r.int("LLEN", "asynq:{default}:active")


def apalis(r):
    # Done jobs stay; the inflight set has the worker's name in its key.
    return r.int("HLEN", "bench:data") - r.int("SCARD", "bench:done")


def oxana(r):
    return r.int("HLEN", "oxanus:jobs")


def rust(name, unsettled, **more):
    return Peer(name, [BINARIES / f"peer-{name}"], unsettled, **more)


def at_defaults(peer):
    return Peer(peer.name + "-default", peer.command, peer.unsettled, {"PEER_DEFAULTS": "1"}, defaults=True)


def sprag_binary():
    """The digest of the sprag that is measured. A target directory may be shared with another checkout, whose
    build then replaces the binaries of this one; cargo's list of sources says whose they are."""
    sources = (BINARIES / "peer-sprag.d").read_text().split()
    if str(HERE.parent.parent / "src/lib.rs") not in sources:
        raise RuntimeError(f"{BINARIES}/peer-sprag was built from another checkout: cargo build --release")
    return hashlib.sha256((BINARIES / "peer-sprag").read_bytes()).hexdigest()


def all_peers():
    peers = [
        rust("sprag", lambda r: r.int("HGET", "sprag:{bench}:meta", "unfinished")),
        rust("floor", lambda r: r.int("LLEN", "q:pending") + r.int("LLEN", "q:running")),
        rust("headgate", headgate),
        rust("bullmq-official", bullmq),
        # Its worker ends with an error on a backlog of 8,000 jobs.
        rust("apalis", apalis, max_backlog=7_000),
        rust("oxana", oxana),
        rust("sidekiq", sidekiq),
        rust("asynq", asynq),
        Peer("bullmq", ["node", HERE / "peers/bullmq/bench.mjs"], bullmq),
    ]
    peers += [at_defaults(peer) for peer in peers if peer.name in ("headgate", "apalis", "oxana", "asynq")]
    return {peer.name: peer for peer in peers}
