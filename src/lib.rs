//! sprag
mod model;
mod store;

pub use model::*;
pub use model::record::Undecodable;
