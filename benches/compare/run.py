#!/usr/bin/env python3
"""sprag beside its peers: the same work, in the same run, on the same machine. See README.md."""
import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from crash import crash_all
from measure import idle, probe, round_of, smoke
from peers import HERE, all_peers, sprag_binary
from table import markdown

SHORT = " **One short run on a busy machine: it shows that everything works, not how fast it is.**"
MARK = "<!-- table -->\n"


def bench(peers, reps):
    """Round by round, and in each round peer by peer, each time starting with another one."""
    results, sizes, failures = {peer.name: {} for peer in peers}, {}, []

    def attempt(peer, key, function):
        try:
            return function()
        except Exception as error:
            failures.append(f"{peer.name} {key}: {error}")
            print("   FAILED", failures[-1], flush=True)
            return None

    for peer in peers:
        sizes[peer.name] = attempt(peer, "probe", lambda: probe(peer))
    peers = [peer for peer in peers if sizes[peer.name] is not None]
    for rep in range(reps):
        shift = rep % len(peers)
        for peer in peers[shift:] + peers[:shift]:
            if peer.defaults and rep:
                continue  # the interval is what decides, and some are half a minute long
            print(f"{time.strftime('%T')} round {rep + 1} of {reps}: {peer.name}", flush=True)
            for key, function in round_of(peer, sizes[peer.name]):
                results[peer.name].setdefault(key, []).append(attempt(peer, key, function))
    print(f"{time.strftime('%T')} idle, all peers", flush=True)
    for name, windows in idle(peers, reps).items():
        results[name]["idle"] = windows
    return results, failures


def about(reps):
    redis = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    rounds = "1 round" if reps == 1 else f"{reps} rounds"
    return f"{time.strftime('%F')}, {os.cpu_count()} CPUs, {platform.machine()}, Redis {redis.removeprefix('v=')}, {rounds}."


def put_into(file, table):
    """Replaces what stands between the two marks."""
    before, _, after = file.read_text().split(MARK)
    file.write_text(f"{before}{MARK}{table}\n{MARK}{after}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["bench", "crash", "table"])
    parser.add_argument("peers", nargs="*", metavar="PEER", help="all, if none is named")
    parser.add_argument("--reps", type=int, default=5, help="rounds (5)")
    parser.add_argument("--json", type=Path, default=HERE / "results/compare.json", help="where the results are kept")
    parser.add_argument("--readme", type=Path, action="append", default=[], help="a file to put the table into")
    parser.add_argument("--smoke", action="store_true", help="one short round: does everything work?")
    return parser.parse_intermixed_args()


def main():
    asked, known = arguments(), all_peers()
    if unknown := set(asked.peers) - set(known):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if asked.smoke:
        smoke()
        asked.reps = 1
        known = {name: peer for name, peer in known.items() if not peer.defaults}  # they take long
    peers = [peer for peer in known.values() if not asked.peers or peer.name in asked.peers]
    binary = sprag_binary() if asked.command != "table" else None
    data, failures = (json.loads(asked.json.read_text()) if asked.json.exists() else {}), []
    if asked.command == "bench":
        data["about"] = about(asked.reps) + SHORT * asked.smoke
        data["peers"], failures = bench(peers, asked.reps)
    elif asked.command == "crash":
        data.setdefault("about", about(1))
        data["crash"] = crash_all([peer for peer in peers if not peer.defaults and peer.name != "floor"])
    if asked.command != "table":
        if binary != sprag_binary():
            failures.append("sprag was built anew while it was measured: nothing of this run counts")
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(data, indent=1))
    print(markdown(data))
    for file in asked.readme:
        put_into(file, markdown(data))
    if failures:
        sys.exit("\n".join(["", "FAILED:", *failures]))


main()
