//! What happens while a store does not answer.

mod health;

pub(crate) use self::health::Health;
