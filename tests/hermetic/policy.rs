//! What a policy may be, whom its limits count, and what becomes of them when they change.

mod bounds;
mod changed;
mod charge;
mod missing_key;
mod quota;
mod scope;
