//! sprag
mod model;
mod store;

pub use model::record::Undecodable;
pub use model::*;
