//! Tests against real servers, which they start themselves.

mod support;
