//! What a policy may be, whom its limits count, and what becomes of them when they change.

mod algorithms;
mod bounds;
mod changed;
mod changed_windows;
mod charge;
mod missing_key;
mod quota;
mod scope;
