// BullMQ. The command line is that of the Rust peers (see common/src/lib.rs). Slots set; finished
// jobs are removed.
import { Queue, Worker } from 'bullmq';
import fs from 'node:fs';

const WARM_UP = 10;
const url = new URL(process.env.PEER_REDIS);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const opts = { removeOnComplete: true };
const [, , command, ...rest] = process.argv;
const num = (i) => Number(rest[i] ?? 0);
const nowUs = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const pad = 'x'.repeat(138);
const payload = (id, sleep_ms) => ({ id, t_us: nowUs(), sleep_ms, pad });
const say = (line) => console.log(JSON.stringify(line));

let handled = 0, expected = -1, firstUs = 0, latencies = null, logFd = null, reach;
const all = new Promise((r) => (reach = r));
const log = (what, id) => logFd && fs.writeSync(logFd, `${what} ${id} ${Math.round(nowUs() / 1000)}\n`);

async function handle({ data }) {
  const now = nowUs();
  firstUs ||= now;
  latencies?.push(now - data.t_us);
  if (data.sleep_ms > 0) {
    log('S', data.id);
    await sleep(data.sleep_ms);
    log('D', data.id);
  }
  if (++handled === expected) reach();
}

async function newQueue() {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  return queue;
}

function newWorker(concurrency) {
  const worker = new Worker('bench', handle, { connection, concurrency });
  worker.on('error', (e) => console.error(String(e)));
}

async function produce(queue, first, end, conc, sleepMs) {
  let next = first;
  await Promise.all(Array.from({ length: conc }, async () => {
    while (next < end) await queue.add('job', payload(next++, sleepMs), opts);
  }));
}

const stdinClosed = () => new Promise((r) => process.stdin.on('end', r).resume());

async function finish(allHaveRun) {
  const closed = stdinClosed();
  if (await Promise.race([all.then(() => true), closed.then(() => false)])) {
    say(allHaveRun());
    await closed;
  }
  say({ handled });
}

const commands = {
  async enqueue() {
    const [jobs, conc] = [num(0), num(1)], queue = await newQueue();
    await produce(queue, 0, conc, conc, num(2));
    const start = performance.now();
    await produce(queue, conc, jobs, conc, num(2));
    say({ timed: Math.max(jobs - conc, 0), secs: (performance.now() - start) / 1000 });
  },
  async batch() {
    const [jobs, size] = [num(0), num(1)], queue = await newQueue();
    const add = (first) => {
      const length = Math.min(size, jobs - first);
      return queue.addBulk(Array.from({ length }, (_, i) => ({ name: 'job', data: payload(first + i, 0), opts })));
    };
    await add(0);
    const start = performance.now();
    for (let first = size; first < jobs; first += size) await add(first);
    say({ timed: Math.max(jobs - size, 0), secs: (performance.now() - start) / 1000 });
  },
  async drain() {
    expected = num(0);
    newWorker(num(1));
    await finish(() => ({ first_us: firstUs }));
  },
  async latency() {
    const hz = num(0), jobs = hz * num(1), queue = await newQueue();
    expected = WARM_UP + jobs;
    newWorker(num(2));
    await produce(queue, 0, WARM_UP, WARM_UP, 0);
    await sleep(1000);
    latencies = [];
    const start = performance.now();
    for (let id = 0; id < jobs; id++) {
      const early = start + (id * 1000) / hz - performance.now();
      if (early > 0) await sleep(early);
      queue.add('job', payload(WARM_UP + id, 0), opts);
    }
    await finish(() => {
      latencies.sort((a, b) => a - b);
      const at = (q) => latencies[Math.min(Math.floor(latencies.length * q), latencies.length - 1)];
      return { p50_us: at(0.5), p99_us: at(0.99) };
    });
  },
  async work() {
    if (rest[1]) logFd = fs.openSync(rest[1], 'a');
    newWorker(num(0));
    await stdinClosed();
  },
};

await commands[command]();
process.exit(0);
