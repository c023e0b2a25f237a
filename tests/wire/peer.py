"""A producer and a worker in Python, written after docs/wire-format.md alone.

    peer.py <lua directory> <unix socket> produce|work

Prints one JSON object; tests/wire/main.rs holds it, and what is in Redis then, against the Rust side.
"""

import hashlib
import json
import pathlib
import secrets
import sys
import time

import msgpack
import redis

LUA = pathlib.Path(sys.argv[1])
UNENCODED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@-"
BUDGET_MS = 60_000
LEASE_MS = 30_000


def encoded(value):
    data = value.encode() if isinstance(value, str) else value
    return "".join(chr(b) if b in UNENCODED else f"%{b:02X}" for b in data)


def fingerprint(kind, payload):
    parts = (len(part).to_bytes(8, "big") + part for part in (kind.encode(), payload))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def record(kind, payload, before_kind="", after_kind=""):
    header = f"fp={fingerprint(kind, payload)}{before_kind} kind={kind}{after_kind}"
    return header.encode() + b"\n" + payload


def read_record(data):
    line, payload = data.split(b"\n", 1)
    return dict(field.split("=", 1) for field in line.decode().split(" ")), payload


class Script:
    """A script, put together from its file and the parts that its head names."""

    def __init__(self, name):
        head, body = (LUA / f"{name}.lua").read_text().split("\n\n", 1)
        titled = dict(
            line[3:].split(": ", 1) for line in head.splitlines() if line.startswith("-- ") and ": " in line
        )
        parts = lambda title: "".join(
            (LUA / "lib" / f"{part}.lua").read_text() for part in titled.get(title, "").split()
        )
        body = body.replace("-- RARE PARTS\n", parts("Rare uses"))
        self.text = f"{head}\n{parts('Uses')}{body}"
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()
        self.keys = self.names(titled["KEYS"])
        self.rare_keys = self.names(titled.get("RARE KEYS", ""))

    @staticmethod
    def names(listed):
        lanes = [f"pending:{lane}" for lane in range(10)]
        return [key for word in listed.split() for key in (lanes if word == "pending:0..9" else [word])]


class Queue:
    def __init__(self, connection, name, namespace="sprag"):
        self.redis, self.name, self.namespace = connection, name, namespace
        self.scripts = {}
        self.caller, self.seq = secrets.token_hex(8), 0

    def key(self, name):
        return f"{self.namespace}:{{{self.name}}}:{name}"

    def send(self, script, keys, args):
        call = [script.sha, len(keys), *map(self.key, keys), *args]
        try:
            return self.redis.evalsha(*call)
        except redis.exceptions.NoScriptError:
            self.redis.script_load(script.text)
            return self.redis.evalsha(*call)

    def run(self, name, *args):
        """A call, with the larger set of keys if the script asks for it."""
        script = self.scripts.setdefault(name, None) or Script(name)
        self.scripts[name] = script
        answer = self.send(script, script.keys, args)
        if answer == b"RARE":
            answer = self.send(script, script.rare_keys, args)
        return answer

    def call(self, name, *args, repeat=False):
        """A call whose answer is kept; `repeat` makes the last one again."""
        self.seq += 0 if repeat else 1
        return self.run(name, self.caller, self.seq, BUDGET_MS, *args)

    def enqueue(self, *jobs, mode="each", repeat=False):
        arguments = [part for job in jobs for part in job]
        answer = self.call("enqueue", mode, *arguments, repeat=repeat)
        lines = outcome_lines(answer)
        if any(word == "MADE" for _, word, *_ in lines):
            self.redis.sadd(f"{self.namespace}:queues", self.name)
        return outcomes(lines)

    def claim(self, count, repeat=False):
        answer = self.call("claim", "peer:1", count, LEASE_MS, repeat=repeat)
        fence, _, more, tried, *rest = answer
        counts = dict(zip(tried[::2], tried[1::2]))
        jobs = []
        for i, (job, data) in enumerate(zip(rest[::2], rest[1::2])):
            fields, payload = read_record(data)
            attempt, crash = map(int, counts.get(i, b"0 0").split())
            jobs.append({
                "id": job.decode(), "fence": fence.decode(), "attempt": attempt, "crash": crash,
                "kind": fields["kind"], "text": msgpack.unpackb(payload)["text"],
                "fits": fields["fp"] == fingerprint(fields["kind"], payload),
                "header": fields.get("header.trace"), "priority": fields.get("priority", "4"),
            })
        return jobs, more

    def settle(self, verb, job, *rest, repeat=False):
        return outcomes(outcome_lines(self.call(verb, job["id"], job["fence"], *rest, repeat=repeat)))[0]

    def extend(self, *jobs):
        held = [part for job in jobs for part in (job["id"], job["fence"])]
        return outcomes(outcome_lines(self.run("extend", LEASE_MS, *held)))

    def sweep(self):
        while True:
            swept = self.run("sweep", "shared", secrets.randbelow(1000) / 1000)
            if swept[0] == 0:
                return swept

    def wait(self, seconds):
        return self.redis.blpop([self.key("wake")], seconds) is not None


def outcome_lines(answer):
    lines = [line.split(" ") for line in answer.decode().split("\n")]
    return [(int(count), *words) for count, *words in lines]


def outcomes(lines):
    return [" ".join(words) for count, *words in lines for _ in range(count)]


def failure(text):
    return ',"error":' + json.dumps(text) + "}"


def greeting(text):
    return msgpack.packb({"text": text})


def produce(queue):
    kind = "greeting:send"
    token = f" unique={kind}~{encoded(bytes([0xFF]) + b'user 42')}"
    batch = [
        ("plain", "", record(kind, greeting("plain"), after_kind=f" header.trace={encoded('a b=c')}")),
        ("later", " due=+300", record(kind, greeting("later"))),
        ("keyed", "", record(kind, greeting("keyed"), token)),
        ("high", "", record(kind, greeting("high"), " priority=9")),
    ]
    said = {"first": queue.enqueue(*batch)}
    said["repeat"] = queue.enqueue(*batch, repeat=True)
    said["again"] = queue.enqueue(*batch)
    said["conflict"] = queue.enqueue(("plain", "", record(kind, greeting("other"))))
    said["duplicate"] = queue.enqueue(("keyed-2", "", record(kind, greeting("second"), token)))
    usual = [(f"usual-{i}", "", record(kind, greeting(f"usual {i}"))) for i in range(3)]
    said["usual"] = queue.enqueue(*usual)
    said["atomic"] = queue.call(
        "enqueue", "atomic", "new", "", record(kind, greeting("new")), "plain", "", record(kind, greeting("other"))
    ).decode()
    return said


def work(queue):
    said = {}
    # The Rust side has left a token, and a job that is due by now.
    said["woken"] = queue.wait(1.5)
    deadline = time.monotonic() + 20
    while queue.redis.zcard(queue.key("scheduled")) and time.monotonic() < deadline:
        due = queue.sweep()[7]
        queue.wait(min(1.5, max(due, 1) / 1000))
    jobs, more = queue.claim(10)
    again, _ = queue.claim(10, repeat=True)
    said.update(jobs=jobs, more=more, same=again == jobs)
    held = {job["id"]: job for job in jobs}
    said["extended"] = queue.extend(*jobs, {"id": "done", "fence": "1"})
    said["complete"] = queue.settle("complete", held["done"], '={"sent":true}')
    said["complete_repeated"] = queue.settle("complete", held["done"], '={"sent":true}', repeat=True)
    said["complete_stale"] = queue.settle("complete", held["done"], "")
    said["retry"] = queue.settle("retry", held["failed"], 60_000, failure('no "route"\nto host'))
    said["exhausted"] = queue.settle("retry", held["last"], 60_000, failure("no more"))
    said["snooze"] = queue.settle("snooze", held["later"], 60_000)
    said["requeue"] = queue.settle("requeue", held["back"])
    said["archive"] = queue.settle("archive", held["given-up"], "discarded", failure("no such user"))
    return said


def main():
    assert fingerprint("a", b"b") == "3c9d591045bc8876f9d0399bbfb05c6a"
    connection = redis.Redis(unix_socket_path=sys.argv[2], socket_timeout=None)
    steps = {"produce": produce, "work": work}
    print(json.dumps(steps[sys.argv[3]](Queue(connection, "wire"))))


main()
