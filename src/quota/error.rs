use std::{fmt, time::Duration};

use super::{PICOS_PER_NANO, TEN_YEARS, picos, unit};
use crate::time::{PICOS_PER_MICRO, PICOS_PER_SEC};

/// A quota that cannot be kept; the message names the value and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaError {
    pub(super) quantity: u64,
    pub(super) period: Duration,
    pub(super) burst: u64,
    pub(super) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NoQuantity,
    NoPeriod,
    LongPeriod,
    NoBurst,
    Fast,
    SmallBurst,
    LargeBurst,
}

impl QuotaError {
    pub(super) const fn message(&self) -> Message {
        let quota = Message::new()
            .text("a quota of ")
            .number(self.quantity as u128)
            .text(" per ")
            .length(picos(self.period))
            .text(" with a burst of ")
            .number(self.burst as u128);
        match self.fault {
            Fault::NoQuantity => quota.text(": the quantity must be at least 1"),
            Fault::NoPeriod => quota.text(": the period must be longer than 0"),
            Fault::LongPeriod => quota.text(": the period must be at most 10 years (315360000 s)"),
            Fault::NoBurst => quota.text(": the burst must be at least 1"),
            Fault::Fast => quota
                .text(": a unit may come back at most every nanosecond; for this period the quantity must be at most ")
                .number(picos(self.period) / PICOS_PER_NANO),
            Fault::SmallBurst => quota
                .text(": the burst must hold what comes back in one microsecond, at least ")
                .number(PICOS_PER_MICRO.div_ceil(unit(self.quantity, self.period))),
            Fault::LargeBurst => quota
                .text(": the whole burst must come back within 10 years (315360000 s); at this rate the burst must be at most ")
                .number(TEN_YEARS / unit(self.quantity, self.period)),
        }
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl std::error::Error for QuotaError {}

/// A message that can be put together in a constant, where formatting is not possible.
pub(super) struct Message {
    bytes: [u8; 320],
    len: usize,
}

impl Message {
    const fn new() -> Self {
        Self { bytes: [0; 320], len: 0 }
    }

    const fn text(mut self, text: &str) -> Self {
        let mut at = 0;
        while at < text.len() && self.len < self.bytes.len() {
            self.bytes[self.len] = text.as_bytes()[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    const fn number(self, number: u128) -> Self {
        let rest = if number >= 10 { self.number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        match std::str::from_utf8(&digit) {
            Ok(digit) => rest.text(digit),
            Err(_) => rest,
        }
    }

    const fn length(self, picos: u128) -> Self {
        if picos.is_multiple_of(PICOS_PER_SEC) {
            return self.number(picos / PICOS_PER_SEC).text(" s");
        }
        self.number(picos / PICOS_PER_NANO).text(" ns")
    }

    pub(super) const fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.len);
        match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => "a quota that cannot be kept",
        }
    }
}
