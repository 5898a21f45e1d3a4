//! Tests that need nothing but this process.

mod exact;
mod key;
