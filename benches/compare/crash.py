"""kill -9 of a worker that runs ten jobs: how long until the last of them is started again.

100 jobs of one second, ten slots. A fresh worker starts at once. All peers at the same time: they sleep.
"""
import os
import tempfile
import threading
import time

from measure import PATIENCE, SLOTS, check, setting
from peers import Running
from redis_server import Redis

JOBS, JOB_MS = 100, 1000
CRASH_SECS = setting("CRASH_SECS", 420)


def read(log):
    """Starts and ends: job → ms since 1970."""
    seen = {"S": {}, "D": {}}
    if os.path.exists(log):
        for line in open(log):
            if line.endswith("\n"):
                what, job, ms = line.split()
                seen[what][int(job)] = int(ms)
    return seen["S"], seen["D"]


def wait_until(condition, limit):
    deadline = time.time() + limit
    while not condition() and time.time() < deadline:
        time.sleep(0.02)


def crash(peer):
    with Redis() as redis, tempfile.TemporaryDirectory(prefix="compare-") as logs:
        first, second = logs + "/first", logs + "/second"
        peer.run(redis, "enqueue", JOBS, 8, JOB_MS, patience=PATIENCE)
        check("jobs in Redis", JOBS, peer.unsettled(redis))
        with Running(peer.start(redis, "work", SLOTS, first), 60):
            def busy():
                started, done = read(first)
                return len(done) >= 2 * SLOTS and len(started) - len(done) >= SLOTS
            wait_until(busy, 50)
            time.sleep(0.4)  # so that the ten are in the middle of it
        killed = time.time()  # leaving `Running` kills with -9
        started, done = read(first)
        running = set(started) - set(done)
        with Running(peer.start(redis, "work", SLOTS, second), CRASH_SECS + 60):
            wait_until(lambda: len(set(done) | set(read(second)[1])) == JOBS, CRASH_SECS)
        again, finished = read(second)
        back = [again[job] / 1000 - killed for job in running if job in again]
        return {
            "running": len(running),
            "started_again": len(back),
            "last_s": max(back) if back and len(back) == len(running) else None,
            "never_done": JOBS - len(set(done) | set(finished)),
            "waited_s": time.time() - killed,
        }


def crash_all(peers):
    results = {}

    def one(peer):
        try:
            results[peer.name] = crash(peer)
        except Exception as error:
            results[peer.name] = {"error": str(error)}
        print("  ", peer.name, results[peer.name], flush=True)

    threads = [threading.Thread(target=one, args=(peer,)) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
