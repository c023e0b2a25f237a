//! Names and ids: strings that were checked once, at the border.

use super::error::{StoreError, quoted};
use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $max:literal, $bound:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text.
            ///
            /// # Errors
            #[doc = concat!("`Invalid` unless the text is ", $bound, ".")]
            pub fn new(text: impl AsRef<str>) -> Result<Self, StoreError> {
                let text = text.as_ref();
                let allowed: fn(u8) -> bool = $allowed;
                if text.is_empty() || text.len() > $max || !text.bytes().all(allowed) {
                    return Err(StoreError::invalid($field, quoted(text.as_bytes()), $bound));
                }
                Ok(Self(text.into()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = StoreError;
            fn from_str(text: &str) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = StoreError;
            fn try_from(text: &str) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// The prefix of every key. Two namespaces on one Redis never meet.
    Namespace, "namespace", 64, "1 to 64 of A-Z a-z 0-9 . _ -",
    |b| b.is_ascii_alphanumeric() || b"._-".contains(&b)
);
name!(
    /// A named stream of jobs, the unit of atomicity.
    QueueName, "queue", 64, "1 to 64 of A-Z a-z 0-9 . _ -",
    |b| b.is_ascii_alphanumeric() || b"._-".contains(&b)
);
name!(
    /// Who holds a lease. Unique per start of a worker.
    WorkerId, "worker", 128, "1 to 128 of A-Z a-z 0-9 . _ : @ -",
    |b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b)
);
name!(
    /// A job's type name and dispatch key, such as `email:welcome`.
    Kind, "kind", 128, "1 to 128 of A-Z a-z 0-9 . _ : / -",
    |b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b)
);
name!(
    /// A job's id, unique in its queue.
    JobId, "id", 128, "1 to 128 printable ASCII characters without space",
    |b| b.is_ascii_graphic()
);

impl Default for Namespace {
    /// `sprag`.
    fn default() -> Self {
        Self("sprag".into())
    }
}

impl JobId {
    /// A new UUIDv7: ids sort by the time they were made.
    pub fn generate() -> Self {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        Self(Arc::from(&*uuid::Uuid::now_v7().hyphenated().encode_lower(&mut text)))
    }
}

/// A tenant inside a queue: at most 128 bytes of UTF-8, no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partition(Arc<str>);

impl Partition {
    /// Checks the text.
    ///
    /// # Errors
    /// `Invalid` if the text is empty, longer than 128 bytes, or has a control character.
    pub fn new(text: impl AsRef<str>) -> Result<Self, StoreError> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > 128 || text.chars().any(char::is_control) {
            let bound = "1 to 128 bytes without control characters";
            return Err(StoreError::invalid("partition", quoted(text.as_bytes()), bound));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Partition {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The number made by a claim: strictly increasing per queue. Ownership is (id, fence).
///
/// Hand it on to the systems that a handler writes to, so that they can refuse a stale writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_that_could_touch_another_key_is_refused_by_name() {
        for bad in ["", "}x", "a:b", "a b", "a\nb", "a\0b", "{q}", "é", &"x".repeat(65)] {
            let error = QueueName::new(bad).expect_err(bad);
            let StoreError::Invalid(text) = error else { panic!("{error:?}") };
            assert!(text.starts_with("queue: ") && text.contains("must be 1 to 64"), "{text}");
        }
        for good in ["a", "email.v2_-X", &"x".repeat(64)] {
            assert_eq!(QueueName::new(good).expect("good").as_str(), good);
        }
    }

    #[test]
    fn every_name_has_its_own_bound() {
        assert!(WorkerId::new("host:1@a-b_c.d").is_ok() && WorkerId::new("a/b").is_err());
        assert!(Kind::new("email:welcome/v2").is_ok() && Kind::new("a@b").is_err());
        assert!(JobId::new("any~!{}printable").is_ok() && JobId::new("a b").is_err());
        assert!(JobId::new("x".repeat(128)).is_ok() && JobId::new("x".repeat(129)).is_err());
        assert!(Kind::new("x".repeat(128)).is_ok() && Kind::new("x".repeat(129)).is_err());
        assert!(WorkerId::new("x".repeat(128)).is_ok() && WorkerId::new("x".repeat(129)).is_err());
        assert!(Namespace::new("x".repeat(64)).is_ok() && Namespace::new("x".repeat(65)).is_err());
        assert!(Partition::new("größe 1").is_ok() && Partition::new("a\u{7f}").is_err());
        assert!(
            Partition::new("x".repeat(128)).is_ok() && Partition::new("x".repeat(129)).is_err()
        );
    }

    #[test]
    fn a_generated_id_is_a_valid_id() {
        let id = JobId::generate();
        assert_eq!(JobId::new(id.as_str()), Ok(id));
    }
}
