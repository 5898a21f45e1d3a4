//! Answers of any form.

use proptest::{collection::vec, prelude::*};

/// What a server may send.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Nil,
    Int(i64),
    Simple(String),
    Bulk(Vec<u8>),
    Error(String),
    Array(Vec<Self>),
    /// Of the third version of the protocol, whole.
    Other(&'static str),
}

impl Reply {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Nil => bytes.extend_from_slice(b"$-1\r\n"),
            Self::Int(number) => bytes.extend_from_slice(format!(":{number}\r\n").as_bytes()),
            Self::Simple(text) => bytes.extend_from_slice(format!("+{text}\r\n").as_bytes()),
            Self::Error(text) => bytes.extend_from_slice(format!("-{text}\r\n").as_bytes()),
            Self::Bulk(text) => {
                bytes.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
                bytes.extend_from_slice(text);
                bytes.extend_from_slice(b"\r\n");
            }
            Self::Array(values) => {
                bytes.extend_from_slice(format!("*{}\r\n", values.len()).as_bytes());
                values.iter().for_each(|value| value.write(bytes));
            }
            Self::Other(text) => bytes.extend_from_slice(text.as_bytes()),
        }
    }
}

const OTHERS: [&str; 9] = [
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "(3492890328409238509324850943850943825024385\r\n",
    "=7\r\ntxt:abc\r\n",
    "%1\r\n:1\r\n:2\r\n",
    "~2\r\n:1\r\n:2\r\n",
    "|1\r\n+ttl\r\n:3\r\n*2\r\n:1700000000000000\r\n:0\r\n",
    "!9\r\nERR wrong\r\n",
];

/// A number near those that mean something.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -3..=3_i64,
        2 => Just(1_700_000_000_000_000),
        2 => -4_000_000_000..=4_000_000_000_i64,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1]),
        1 => 9_999_999_999_999_990..=10_000_000_000_000_010_i64,
        1 => 999_990..=1_000_010_i64,
    ]
}

fn leaf() -> impl Strategy<Value = Reply> {
    prop_oneof![
        12 => number().prop_map(Reply::Int),
        1 => Just(Reply::Nil),
        1 => "[ -~]{0,20}".prop_map(Reply::Simple),
        2 => vec(any::<u8>(), 0..40).prop_map(Reply::Bulk),
        1 => "[A-Z]{0,12} ?[ -~]{0,20}".prop_map(Reply::Error),
        1 => prop::sample::select(OTHERS.to_vec()).prop_map(Reply::Other),
    ]
}

/// Any answer, often one of nearly the right form.
pub(super) fn reply(hits: usize) -> impl Strategy<Value = Reply> {
    let tree = leaf().prop_recursive(5, 64, 6, |inner| vec(inner, 0..6).prop_map(Reply::Array));
    let hit = prop_oneof![
        4 => leaf(),
        4 => vec(number().prop_map(Reply::Int), 0..5).prop_map(Reply::Array),
        1 => vec(leaf(), 0..5).prop_map(Reply::Array),
    ];
    let near = (number(), vec(hit, hits), 0..8_u8).prop_map(|(now, hits, count)| {
        let mut values = vec![Reply::Int(if count < 6 { 1_700_000_000_000_000 } else { now })];
        values.extend(hits);
        match count {
            0 => _ = values.pop(),
            1 => values.push(Reply::Int(0)),
            _ => {}
        }
        Reply::Array(values)
    });
    let huge = (1_000..30_000_usize).prop_map(|count| Reply::Array(vec![Reply::Int(0); count]));
    prop_oneof![20 => tree, 60 => near, 1 => huge]
}
