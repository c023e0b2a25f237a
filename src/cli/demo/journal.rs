//! What the processes write down: a JSON object a line, in files that all of them append to.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    marker::PhantomData,
    path::{Path, PathBuf},
};

/// Where producers write what they were told.
pub(super) const TOLD: &str = "told.jsonl";
/// Where handlers write what they did.
pub(super) const RAN: &str = "ran.jsonl";

/// The answer to one enqueue call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) line: usize,
    pub(super) queue: String,
    pub(super) answer: Answer,
    pub(super) at: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The id of the new job.
    Enqueued(String),
    /// `Duplicate`: the id of the job that is there.
    Joined(String),
    /// `Backpressure`: tried again later.
    Refused,
}

/// The start or end of one run of a handler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) queue: String,
    pub(super) id: String,
    pub(super) step: Step,
    pub(super) attempt: u32,
    pub(super) crash: u32,
    pub(super) fence: u64,
    pub(super) pid: u32,
    pub(super) at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Start,
    Done,
    /// Failed, to be tried again.
    Failed,
    /// Failed for the last time.
    GivenUp,
    /// Told to stop.
    Stopped,
}

/// The end of a file that several processes append to.
#[derive(Debug)]
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open(dir: &Path, name: &str) -> std::io::Result<Self> {
        let options = OpenOptions::new().append(true).create(true).clone();
        Ok(Self(options.open(dir.join(name))?))
    }

    /// One write call a line, so that lines of several processes do not mix.
    pub(super) fn write(&self, entry: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        (&self.0).write_all(&line)
    }
}

/// Reads a journal while it grows.
#[derive(Debug)]
pub(super) struct Reader<T> {
    path: PathBuf,
    read: u64,
    entries: PhantomData<T>,
}

impl<T: DeserializeOwned> Reader<T> {
    pub(super) fn new(dir: &Path, name: &str) -> Self {
        Self { path: dir.join(name), read: 0, entries: PhantomData }
    }

    /// The whole lines that have come since the last call.
    pub(super) fn next(&mut self) -> anyhow::Result<Vec<T>> {
        let mut text = String::new();
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        Ok(text[..whole].lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_each_whole_line_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut reader = Reader::<u32>::new(dir.path(), "j");
        assert_eq!(reader.next().expect("none yet"), [0; 0]);
        let journal = Journal::open(dir.path(), "j").expect("opens");
        (1..=2).for_each(|n| journal.write(&n).expect("writes"));
        (&journal.0).write_all(b"3").expect("writes");
        assert_eq!(reader.next().expect("two"), [1, 2]);
        (&journal.0).write_all(b"4\n").expect("writes");
        assert_eq!(reader.next().expect("one"), [34]);
    }
}
