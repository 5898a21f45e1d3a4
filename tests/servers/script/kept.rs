use tollgate::algorithm::State;

use crate::support::Value;

/// What a key holds, by the headers of the files in `lua/algorithm`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kept {
    Text(String),
    /// Members with their scores.
    Log(Vec<(String, u64)>),
}

impl Kept {
    /// The state of a key from which so many units were `taken`, ever.
    pub(super) fn of(state: &State, taken: u64) -> Self {
        match state {
            State::TokenBucket(full_at) => {
                let (micros, picos) = full_at.parts();
                Self::Text(super::wire::span(micros * 1_000_000 + picos))
            }
            State::SlidingCounter(counts) => Self::Text(format!(
                "{} {} {}",
                counts.start.as_micros(),
                counts.current,
                counts.previous
            )),
            State::FixedWindow(count) => {
                Self::Text(format!("{} {}", count.start.as_micros(), count.used))
            }
            State::Lock(denials) => {
                Self::Text(format!("{} {}", denials.until.as_micros(), denials.count))
            }
            State::SlidingLog(moments) => {
                let moments: Vec<u64> = moments.iter().collect();
                let first = (taken + 1).saturating_sub(moments.len() as u64);
                let member = |(number, moment)| (format!("{number:016}"), moment);
                Self::Log((first..).zip(moments).map(member).collect())
            }
            other => panic!("unknown: {other:?}"),
        }
    }

    /// Of a log, the scores alone: members are numbered anew once a log has expired.
    pub(crate) fn without_numbers(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text),
            Self::Log(log) => {
                Self::Log(log.into_iter().map(|(_, moment)| (String::new(), moment)).collect())
            }
        }
    }

    /// What a `GET`, or a `ZRANGE` with scores, answered.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => panic!("not a text: {value:?}"),
        };
        let score = |value: &Value| text(value).parse().expect("whole microseconds");
        match value {
            Value::Nil => None,
            Value::Array(pairs) if pairs.is_empty() => None,
            Value::Array(pairs) => {
                let member = |pair: &[Value]| (text(&pair[0]), score(&pair[1]));
                Some(Self::Log(pairs.chunks(2).map(member).collect()))
            }
            value => Some(Self::Text(text(value))),
        }
    }
}
