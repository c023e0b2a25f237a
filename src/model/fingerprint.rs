//! What a job is made of, as one short text.

use super::error::{StoreError, quoted};
use sha2::{Digest, Sha256};
use std::fmt;

/// The first 16 bytes of SHA-256 over length-prefixed kind and payload, as 32 lowercase hex digits.
///
/// Each part is preceded by its length as 8 bytes, big endian. Two jobs with one fingerprint have
/// the same content; map types serialise in any order, so a payload with one may change it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of this content.
    pub fn of(kind: &str, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        for part in [kind.as_bytes(), payload] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut hex = [0; 32];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(&hash.finalize()[..16]) {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(hex)
    }

    /// Checks the text.
    ///
    /// # Errors
    /// `Invalid` unless it is 32 lowercase hex digits.
    pub fn new(text: &str) -> Result<Self, StoreError> {
        let hex = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        match <[u8; 32]>::try_from(text.as_bytes()) {
            Ok(digits) if digits.iter().all(hex) => Ok(Self(digits)),
            _ => Err(StoreError::invalid(
                "fingerprint",
                quoted(text.as_bytes()),
                "32 lowercase hex digits",
            )),
        }
    }

    /// The 32 digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl AsRef<str> for Fingerprint {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_documented_one() {
        // printf '\0\0\0\0\0\0\0\1a\0\0\0\0\0\0\0\1b' | sha256sum
        assert_eq!(Fingerprint::of("a", b"b").as_str(), "3c9d591045bc8876f9d0399bbfb05c6a");
    }

    #[test]
    fn a_length_prefix_keeps_kind_and_payload_apart() {
        assert_ne!(Fingerprint::of("ab", b"c"), Fingerprint::of("a", b"bc"));
        assert_eq!(
            Fingerprint::new(Fingerprint::of("a", b"").as_str()),
            Ok(Fingerprint::of("a", b""))
        );
        assert!(Fingerprint::new("A0").is_err() && Fingerprint::new(&"A".repeat(32)).is_err());
    }
}
