//! What went wrong once.
