//! As much of RESP (2 and 3) as a proxy needs: where a frame ends, and the words of a command.

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Cuts a byte stream into whole frames.
pub struct Frames<R> {
    io: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(io: R) -> Self {
        Self { io, buffer: BytesMut::new() }
    }

    /// The stream; what was read and not asked for is lost.
    pub fn into_inner(self) -> R {
        self.io
    }

    /// The next frame's bytes; none at the end of the stream, also when it ends inside a frame.
    /// Cancel safe: what was read stays in the buffer.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(len) = frame_len(&self.buffer)? {
                return Ok(Some(self.buffer.split_to(len).freeze()));
            }
            if self.io.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Length of the first frame in `buffer`; none if the rest of it is still to come.
pub fn frame_len(buffer: &[u8]) -> io::Result<Option<usize>> {
    let mut at = 0;
    let mut frames_left = 1;
    while frames_left > 0 {
        let Some((line, after_line)) = line(buffer, at) else { return Ok(None) };
        let (&kind, rest) = line.split_first().ok_or_else(|| malformed(line))?;
        frames_left -= 1;
        at = after_line;
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {}
            b'$' | b'=' | b'!' => at += size(rest)?.map_or(0, |len| len + 2),
            b'*' | b'~' | b'>' => frames_left += size(rest)?.unwrap_or(0),
            b'%' => frames_left += 2 * size(rest)?.unwrap_or(0),
            // An attribute comes before the frame that it describes.
            b'|' => frames_left += 2 * size(rest)?.unwrap_or(0) + 1,
            _ => return Err(malformed(line)),
        }
        if at > buffer.len() {
            return Ok(None);
        }
    }
    Ok(Some(at))
}

/// The words of a command: an array of bulk strings, as every client library sends it.
pub fn words(frame: &[u8]) -> io::Result<Vec<&[u8]>> {
    let (header, mut at) = line(frame, 0).ok_or_else(|| malformed(frame))?;
    let count = header.strip_prefix(b"*").ok_or_else(|| malformed(header))?;
    let mut words = Vec::new();
    for _ in 0..size(count)?.unwrap_or(0) {
        let (header, start) = line(frame, at).ok_or_else(|| malformed(frame))?;
        let len = size(header.strip_prefix(b"$").ok_or_else(|| malformed(header))?)?.unwrap_or(0);
        words.push(frame.get(start..start + len).ok_or_else(|| malformed(frame))?);
        at = start + len + 2;
    }
    Ok(words)
}

/// The line that begins at `at`, without its end, and where the next one begins.
fn line(buffer: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = buffer.get(at..)?;
    let len = rest.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&rest[..len], at + len + 2))
}

/// A length or count; none for the null of RESP2, `-1`.
fn size(digits: &[u8]) -> io::Result<Option<usize>> {
    if digits == b"-1" {
        return Ok(None);
    }
    let size = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    size.map(Some).ok_or_else(|| malformed(digits))
}

fn malformed(bytes: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(bytes).into_owned();
    io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {text:?}"))
}
