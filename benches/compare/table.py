"""The results as Markdown: sprag's figures, and how many times better it is than each peer."""
import statistics

# Measure, figure, its title, its format, and whether more of it is better.
ROWS = [
    ("enqueue_1", "per_s", "enqueue, one by one: jobs/s", "{:,.0f}", True),
    ("enqueue_64", "per_s", "enqueue, 64 in flight: jobs/s", "{:,.0f}", True),
    ("batch_100", "per_s", "enqueue, batches of 100: jobs/s", "{:,.0f}", True),
    ("drain_1", "per_s", "drain, 1 slot: jobs/s", "{:,.0f}", True),
    ("drain_10", "per_s", "drain, 10 slots: jobs/s", "{:,.0f}", True),
    ("drain_100", "per_s", "drain, 100 slots: jobs/s", "{:,.0f}", True),
    ("cpu", "cpu_us", "Redis CPU of a job, µs", "{:.1f}", False),
    ("waiting", "bytes", "memory of a waiting job, bytes", "{:,.0f}", False),
    ("latency", "p50_ms", "start latency p50, ms", "{:.2f}", False),
    ("latency", "p99_ms", "start latency p99, ms", "{:.2f}", False),
    ("idle", "per_s", "idle worker: commands/s", "{:.2f}", False),
]
POLLING = {"latency", "idle"}


def figures(result, measure, figure):
    """One figure a round; a job's CPU is that of its enqueue, 64 in flight, and of its drain, 100 slots."""
    if measure == "cpu":
        rounds = zip(result.get("enqueue_64", []), result.get("drain_100", []))
        return [a["cpu_us"] + b["cpu_us"] if a and b else None for a, b in rounds]
    return [one and one[figure] for one in result.get(measure, [])]


def spread(values, form):
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    middle = form.format(statistics.median(values))
    low, high = form.format(min(values)), form.format(max(values))
    return middle if low == high else f"{middle} ({low}..{high})"


def ratios(ours, theirs, more_is_better):
    """Round by round: what disturbs the machine for a while disturbs both."""
    pairs = zip(ours, theirs) if more_is_better else zip(theirs, ours)
    return [above / below for above, below in pairs if above is not None and below]


def lines(results, rows, peers):
    yield "| | sprag | " + " | ".join("× " + name for name in peers) + " |"
    yield "|---" * (len(peers) + 2) + "|"
    for measure, figure, title, form, more_is_better in rows:
        ours = figures(results["sprag"], measure, figure)
        cells = [spread(ours, form)]
        for name in peers:
            theirs = figures(results[name], measure, figure)
            cells.append(spread(ratios(ours, theirs, more_is_better), "{:.2f}"))
        quotient = "sprag ÷ peer" if more_is_better else "peer ÷ sprag"
        yield f"| {title} ({quotient}) | " + " | ".join(cells) + " |"


def crash_lines(crashes):
    yield "| kill -9 with 10 jobs running | the last is started again after | not started again |"
    yield "|---|---|---|"
    for name, one in crashes.items():
        if "error" in one:
            yield f"| {name} | failed: {one['error']} | |"
            continue
        back = f"{one['last_s']:.1f} s" if one["last_s"] is not None else f"not within {one['waited_s']:.0f} s"
        yield f"| {name} | {back} | {one['running'] - one['started_again']} of {one['running']} |"


def markdown(data):
    results = data.get("peers", {})
    others = [name for name in results if name != "sprag"]
    text = [f"{data['about']}", ""]
    if "sprag" in results:
        text += ["The column sprag is its own figure. The others say how many times better sprag is: above 1 it",
                 "is sprag that is better, below 1 the peer. Medians of the rounds (min..max); – is not to be had.", ""]
        text += lines(results, ROWS, [name for name in others if not name.endswith("-default")])
        defaults = [name for name in others if name.endswith("-default")]
        if defaults:
            text += ["", "The libraries that poll, at their default intervals:", ""]
            text += lines(results, [row for row in ROWS if row[0] in POLLING], defaults)
    if data.get("crash"):
        text += ["", *crash_lines(data["crash"])]
    return "\n".join(text)
