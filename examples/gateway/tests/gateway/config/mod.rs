//! Gateways that do what a file says.

#![cfg(test)]

mod check;
mod explain;
mod identity;
mod published;
mod reload;
mod routes;
mod support;
