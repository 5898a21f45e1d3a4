//! What a policy may be, whom its limits count, and what becomes of them when they change.

mod algorithms;
mod bounds;
mod changed;
mod changed_windows;
mod charge;
mod drawn_keys;
mod missing_key;
mod quota;
mod scope;
mod several_keys;
