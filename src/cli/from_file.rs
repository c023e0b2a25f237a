//! `sprag enqueue --from`: a payload a line.

use crate::{
    args::Global,
    connect,
    enqueue::Args,
    fail::{self, Failure},
    out,
    payload::{self, CodecArg},
    redact,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sprag::{Client, Envelope, RedisStore, Store, StoreError, model::MAX_BATCH};
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    process::ExitCode,
};

/// Jobs that are read before they are sent; a payload may be 1 MiB, memory is finite.
const CHUNK_BYTES: usize = 4 << 20;

/// What became of all lines.
#[derive(Debug, Default, Serialize)]
struct Summary {
    lines: u64,
    enqueued: u64,
    existing: u64,
    joined: u64,
    refused: u64,
}

pub(crate) async fn enqueue(global: &Global, args: &Args) -> Result<ExitCode, Failure> {
    let file = args.from.as_deref().unwrap_or(Path::new("-"));
    let lines = Lines::open(file, args.codec, global)?;
    let store = connect::store(global)?;
    if args.atomic {
        atomic(global, args, store, lines).await
    } else {
        each(global, args, store, lines).await
    }
}

/// All lines or none: the first bad one ends it, and nothing is written.
async fn atomic(
    global: &Global,
    args: &Args,
    store: RedisStore,
    mut lines: Lines,
) -> Result<ExitCode, Failure> {
    let (mut jobs, mut numbers) = (Vec::new(), Vec::new());
    while let Some((line, text)) = lines.next()? {
        jobs.push(args.envelope(text).map_err(|error| Failure::Store { error, line: Some(line) })?);
        numbers.push(line);
        if jobs.len() > MAX_BATCH {
            // Too many already: the store says so.
            break;
        }
    }
    let done = store.enqueue_atomic(&args.queue, &jobs).await.map_err(|refused| {
        match refused.index.and_then(|index| numbers.get(index)) {
            Some(line) => Failure::Store { error: refused.error, line: Some(*line) },
            None => Failure::unsure_lines(refused.error, &numbers, &jobs, None),
        }
    })?;
    let existing = done.iter().filter(|job| job.existing).count() as u64;
    let lines = done.len() as u64;
    let summary = Summary { lines, enqueued: lines - existing, existing, ..Summary::default() };
    summary.tell(global)?;
    Ok(ExitCode::SUCCESS)
}

/// Each line by itself. A call that fails ends it, and the summary tells how far it came.
async fn each(
    global: &Global,
    args: &Args,
    store: RedisStore,
    mut lines: Lines,
) -> Result<ExitCode, Failure> {
    let mut run =
        Run { global, args, client: Client::new(store), summary: Summary::default(), first: None };
    let mut chunk = Chunk::default();
    while let Some((line, text)) = lines.next()? {
        run.summary.lines += 1;
        match args.envelope(text) {
            Ok(job) => chunk.push(line, job),
            Err(error) => run.refused(line, &error)?,
        }
        if chunk.is_full() {
            run.send(&mut chunk).await?;
        }
    }
    run.send(&mut chunk).await?;
    drop(lines);
    run.summary.tell(global)?;
    match run.first {
        None => Ok(ExitCode::SUCCESS),
        Some((line, error)) => {
            let refused = run.summary.refused;
            Err(Failure::Refused { error, line: Some(line), id: None, refused })
        }
    }
}

/// Jobs on their way, and the lines they stood in.
#[derive(Default)]
struct Chunk {
    lines: Vec<usize>,
    jobs: Vec<Envelope>,
    bytes: usize,
}

impl Chunk {
    fn push(&mut self, line: usize, job: Envelope) {
        self.bytes += job.payload().len();
        self.lines.push(line);
        self.jobs.push(job);
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= MAX_BATCH || self.bytes >= CHUNK_BYTES
    }
}

struct Run<'a> {
    global: &'a Global,
    args: &'a Args,
    client: Client,
    summary: Summary,
    /// The first refused line gives the exit code.
    first: Option<(usize, StoreError)>,
}

impl Run<'_> {
    async fn send(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        let Chunk { lines, jobs, .. } = std::mem::take(chunk);
        let outcomes = match self.client.enqueue_envelopes(&jobs).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                self.summary.lines -= jobs.len() as u64;
                self.summary.tell(self.global)?;
                return Err(Failure::unsure_lines(error, &lines, &jobs, lines.first().copied()));
            }
        };
        for (line, outcome) in lines.into_iter().zip(outcomes) {
            match outcome {
                Ok(done) if done.existing => self.summary.existing += 1,
                Ok(_) => self.summary.enqueued += 1,
                Err(StoreError::Duplicate { .. }) if self.args.join => self.summary.joined += 1,
                Err(error) => self.refused(line, &error)?,
            }
        }
        Ok(())
    }

    fn refused(&mut self, line: usize, error: &StoreError) -> Result<(), Failure> {
        self.summary.refused += 1;
        self.first.get_or_insert_with(|| (line, error.clone()));
        if self.global.json {
            return out::object(&fail::Object::of(error, Some(line)));
        }
        // An error, not talk.
        out::warn(&redact::redacted(&format!("line {line}: {error}")));
        Ok(())
    }
}

impl Summary {
    fn tell(&self, global: &Global) -> Result<(), Failure> {
        if global.json {
            return out::object(self);
        }
        let Self { lines, enqueued, existing, joined, refused } = self;
        out::line(&format!(
            "{lines} lines: {enqueued} enqueued, {existing} existing, {joined} joined, {refused} refused"
        ))
    }
}

/// The lines of a file that are not empty, with a bar that tells how far it is read.
struct Lines {
    reader: Box<dyn BufRead>,
    name: String,
    codec: CodecArg,
    number: usize,
    bar: ProgressBar,
}

impl Lines {
    fn open(file: &Path, codec: CodecArg, global: &Global) -> Result<Self, StoreError> {
        let (reader, name, size): (Box<dyn BufRead>, _, _) = if file == Path::new("-") {
            (Box::new(std::io::stdin().lock()), "stdin".to_owned(), 0)
        } else {
            let name = file.display().to_string();
            let opened = File::open(file).and_then(|file| Ok((file.metadata()?.len(), file)));
            let (size, opened) =
                opened.map_err(|error| payload::unreadable("--from", &name, &error))?;
            (Box::new(BufReader::new(opened)), name, size)
        };
        // indicatif draws on stderr, and only on a terminal.
        let bar = if global.quiet || global.json || size == 0 {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(size).with_style(
                ProgressStyle::with_template(
                    "{bar:40} {percent}% {binary_bytes_per_sec}, {eta} left",
                )
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        };
        Ok(Self { reader, name, codec, number: 0, bar })
    }

    /// The next line and its number, counted from 1.
    fn next(&mut self) -> Result<Option<(usize, Vec<u8>)>, StoreError> {
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line);
            let read = read.map_err(|error| payload::unreadable("--from", &self.name, &error))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bar.inc(read as u64);
            let end = match self.codec {
                CodecArg::Json => line.trim_ascii_end().len(),
                // Every byte but the line's end is its own.
                CodecArg::Raw => line.strip_suffix(b"\n").unwrap_or(&line).len(),
            };
            line.truncate(end);
            if !line.is_empty() {
                return Ok(Some((self.number, line)));
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
