//! Tests that need nothing but this process.

mod key;
