"""The measurements. Each takes a peer and returns its figures; it fails unless every job ran and was settled."""
import contextlib
import os
import time

from peers import Running
from redis_server import Monitor, Redis


def setting(name, default):
    return type(default)(os.environ.get("COMPARE_" + name, default))


SECS = setting("SECS", 1.5)  # a timed run is sized to last about this long
WAITING = setting("WAITING_JOBS", 10_000)
LATENCY_SECS = setting("LATENCY_SECS", 8)
IDLE_SECS = setting("IDLE_SECS", 10)
IDLE_WARM_UP = setting("IDLE_WARM_UP", 5)
PATIENCE = setting("PATIENCE", 120)


def smoke():
    """Sizes that show whether everything works, and nothing else."""
    globals().update(SECS=0.3, WAITING=2_000, LATENCY_SECS=1, IDLE_SECS=3, IDLE_WARM_UP=3)


SLOTS = 10  # of the worker for latency, idle and crash
LATENCY_HZ, LATENCY_WARM_UP = 100, 10  # the latter as in common/src/lib.rs
BATCH = 100
ENQUEUES = {"enqueue_1": ("enqueue", 1), "enqueue_64": ("enqueue", 64), "batch_100": ("batch", BATCH)}
DRAINS = {"drain_1": 1, "drain_10": 10, "drain_100": 100}
LATENCY = "latency"


class Mismatch(Exception):
    """Not every job ran or was settled."""


def check(what, expected, got):
    if expected != got:
        raise Mismatch(f"{what}: {got} instead of {expected}")


def enqueue(peer, key, jobs):
    command, width = ENQUEUES[key]
    with Redis() as redis:
        before = redis.cpu_us()
        answer = peer.run(redis, command, jobs, width, patience=PATIENCE)
        if answer.get("unsupported"):
            return None
        cpu = redis.cpu_us() - before
        check("jobs in Redis", jobs, peer.unsettled(redis))
    return {"per_s": answer["timed"] / answer["secs"], "cpu_us": cpu / jobs, "jobs": jobs}


def seed(peer, redis, jobs):
    if peer.run(redis, "batch", jobs, BATCH, patience=PATIENCE).get("unsupported"):
        peer.run(redis, "enqueue", jobs, 64, patience=PATIENCE)
    check("jobs in Redis", jobs, peer.unsettled(redis))


def settled_at(peer, redis, running):
    """When the server's state first shows that nothing is unacknowledged. Asked only once all jobs have
    run, so that asking costs the run nothing."""
    while left := peer.unsettled(redis):
        if time.time() > running.deadline:
            raise Mismatch(f"{left} jobs are not settled")
        time.sleep(0.0005)
    return time.time()


def drain(peer, key, jobs):
    jobs = min(jobs, peer.max_backlog)
    with Redis() as redis:
        seed(peer, redis, jobs)
        before = redis.cpu_us()
        with Running(peer.start(redis, "drain", jobs, DRAINS[key]), PATIENCE) as running:
            first = running.line()["first_us"] / 1e6
            secs = settled_at(peer, redis, running) - first
            cpu = redis.cpu_us() - before
            check("jobs run", jobs, running.close()["handled"])
    return {"per_s": jobs / secs, "cpu_us": cpu / jobs, "jobs": jobs}


def waiting(peer):
    """Bytes of a waiting job: what Redis holds more after many jobs than after few, which have paid for
    the scripts and the empty keys."""
    few = 100
    with Redis() as redis:
        peer.run(redis, "enqueue", few, 64, patience=PATIENCE)
        before = redis.memory()
        peer.run(redis, "enqueue", WAITING, 64, patience=PATIENCE)
        check("jobs in Redis", few + WAITING, peer.unsettled(redis))
        return {"bytes": (redis.memory() - before) / WAITING}


def latency(peer):
    jobs = LATENCY_HZ * LATENCY_SECS + LATENCY_WARM_UP
    with Redis() as redis:
        with Running(peer.start(redis, "latency", LATENCY_HZ, LATENCY_SECS, SLOTS), PATIENCE) as running:
            answer = running.line()
            settled_at(peer, redis, running)
            check("jobs run", jobs, running.close()["handled"])
    return {"p50_ms": answer["p50_us"] / 1e3, "p99_ms": answer["p99_us"] / 1e3}


def idle(peers, windows):
    """Commands a second of a worker with nothing to do, of all peers at once: counts, not times."""
    with contextlib.ExitStack() as stack:
        monitors = {}
        for peer in peers:
            redis = stack.enter_context(Redis())
            stack.enter_context(Running(peer.start(redis, "work", SLOTS), 3600))
            monitors[peer.name] = Monitor(redis)
        time.sleep(IDLE_WARM_UP)
        figures = {peer.name: [] for peer in peers}
        for _ in range(windows):
            before = {name: monitor.sent for name, monitor in monitors.items()}
            time.sleep(IDLE_SECS)
            for name, monitor in monitors.items():
                figures[name].append({"per_s": (monitor.sent - before[name]) / IDLE_SECS})
        return figures


def sized(measure, least):
    """How many jobs fill a timed run, found with ever more of them; none if the peer has no such call."""
    jobs = least
    while figures := measure(jobs):
        if jobs >= figures["per_s"] * SECS / 10:
            return int(max(least, min(figures["per_s"] * SECS, 400_000)))
        jobs *= 8
    return None


def probe(peer):
    if peer.defaults:
        return {}
    sizes = {key: sized(lambda jobs, key=key: enqueue(peer, key, jobs), 2 * BATCH) for key in ENQUEUES}
    return sizes | {key: sized(lambda jobs, key=key: drain(peer, key, jobs), 64) for key in DRAINS}


def round_of(peer, sizes):
    """All measurements of one peer, as (key, function)."""
    if peer.defaults:
        return [(LATENCY, lambda: latency(peer))]
    return [
        *((key, lambda key=key: enqueue(peer, key, sizes[key])) for key in ENQUEUES if sizes[key]),
        *((key, lambda key=key: drain(peer, key, sizes[key])) for key in DRAINS),
        ("waiting", lambda: waiting(peer)),
        (LATENCY, lambda: latency(peer)),
    ]
