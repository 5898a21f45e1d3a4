//! Tests that need nothing but this process.

#![cfg(test)]

mod exact;
mod key;
