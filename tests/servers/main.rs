//! Tests against real servers, which they start themselves.

mod differential;
mod exact;
mod lua_faults;
mod replay;
mod script;
mod support;
