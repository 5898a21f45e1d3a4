//! What a policy may be, whom its limits count, and what becomes of them when they change.

mod algorithms;
mod bounds;
mod callers;
mod changed;
mod changed_windows;
mod charge;
mod drawn_keys;
mod exempt;
mod missing_key;
mod one_slot;
mod quota;
mod reload;
mod routes;
mod scope;
mod several_keys;
mod tiers;
