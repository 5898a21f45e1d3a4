//! How the layer stands around a service, and in the stacks that people build.

mod admission;
mod axum;
mod cors;
mod extensions;
mod grpc;
mod hyper;
mod inner;
mod sharing;
