"""A private redis-server: one for every peer and measurement, in a directory of its own, ended by its handle."""
import re
import socket
import subprocess
import tempfile
import threading
import time

# One call is `+<time> [<db> <who>] "<command>" ...`; who is `lua` for calls inside a script.
MONITOR_LINE = re.compile(rb'\+[\d.]+ \[\d+ ([^\]]*)\] "([^"]*)"')


class Redis:
    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="compare-")
        for _ in range(5):  # somebody else may take the free port first
            port = free_port()
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
                cwd=self.dir.name, stdout=subprocess.DEVNULL)
            self.address = ("127.0.0.1", port)
            if self.wait_until_up():
                break
        self.url = f"redis://127.0.0.1:{port}"
        self.lines = self.socket.makefile("rb")
        return self

    def wait_until_up(self):
        while self.process.poll() is None:
            try:
                self.socket = socket.create_connection(self.address)
                return True
            except OSError:
                time.sleep(0.01)
        return False

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.dir.cleanup()

    def call(self, *words):
        self.socket.sendall(encoded(words))
        return self.reply()

    def int(self, *words):
        return int(self.call(*words) or 0)

    def reply(self):
        line = self.lines.readline()
        kind, rest = line[:1], line[1:].strip().decode()
        if kind == b"-":
            raise RuntimeError(rest)
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"$":
            return self.lines.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        return rest

    def info(self):
        return dict(line.split(":", 1) for line in self.call("INFO", "everything").splitlines() if ":" in line)

    def cpu_us(self):
        """CPU that the server has used, user and system, µs."""
        info = self.info()
        return (float(info["used_cpu_user"]) + float(info["used_cpu_sys"])) * 1e6

    def memory(self):
        return int(self.info()["used_memory"])


class Monitor:
    """Counts the commands that clients send; those inside scripts are not sent."""

    def __init__(self, redis):
        self.sent = 0
        self.socket = socket.create_connection(redis.address)
        self.socket.sendall(encoded(["MONITOR"]))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.socket.makefile("rb"):
            match = MONITOR_LINE.match(line)
            self.sent += bool(match and match[1] != b"lua")


def encoded(words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
