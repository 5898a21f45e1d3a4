//! What clients are told about their limits.
//!
//! The draft's fields follow draft-ietf-httpapi-ratelimit-headers-11, in the syntax of RFC 9651; the
//! draft may still change.

use std::{iter, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CACHE_CONTROL, RETRY_AFTER},
};

use smallvec::SmallVec;

use crate::{
    decision::{Decision, Rule, RuleFields, Verdict},
    time::MICROS_PER_SEC,
};

const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// All fields that say what these say, those of older drafts included.
static KNOWN: [HeaderName; 8] = [
    X_LIMIT,
    X_REMAINING,
    X_RESET,
    POLICY,
    STATE,
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The largest integer of a structured field (RFC 9651 §3.3.1).
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Which header fields tell clients about their limits, on admitted and on denied responses.
///
/// `Retry-After` is on every denial whose wait ends, whatever is chosen here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFormat {
    /// None.
    None,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, of the limit that binds.
    XRateLimit,
    /// `RateLimit-Policy` with all limits, and `RateLimit` with the one that binds, or all that deny:
    /// the syntax of draft-ietf-httpapi-ratelimit-headers-11.
    Draft,
    /// All five.
    #[default]
    Both,
}

impl HeaderFormat {
    /// The names of its fields.
    pub(super) fn names(self) -> &'static [HeaderName] {
        match self {
            Self::None => &[],
            Self::XRateLimit => &KNOWN[..3],
            Self::Draft => &KNOWN[3..5],
            Self::Both => &KNOWN[..5],
        }
    }

    /// How many there are. A map that grows costs more than one that has room.
    pub(super) fn fields(self) -> usize {
        self.names().len()
    }
}

/// How `X-RateLimit-Reset` names its moment: when all units are back, or, where none is left, when
/// the next request passes. `Retry-After` and the draft's `t` are seconds from now in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetFormat {
    /// Seconds since the Unix epoch, by the store's clock, as GitHub does.
    #[default]
    EpochSeconds,
    /// Seconds from now, as Envoy does.
    DeltaSeconds,
}

/// Writes the fields of one layer.
#[derive(Clone, Copy, Default)]
pub(super) struct Fields {
    pub(super) format: HeaderFormat,
    pub(super) reset: ResetFormat,
}

impl Fields {
    /// Writes what `decision` says. Fields that are there already are replaced if they are `ours`, or
    /// looser; those of a stricter upstream stay. Returns whether the fields are ours now.
    pub(super) fn write(&self, decision: &Decision, ours: bool, headers: &mut HeaderMap) -> bool {
        let Some(binding) = decision.binding() else { return ours };
        if self.format == HeaderFormat::None {
            return ours;
        }
        headers.reserve(self.format.fields());
        if headers.keys().any(is_known) {
            if !ours && upstream(headers).is_some_and(|left| left <= binding.standing().remaining())
            {
                return false;
            }
            for name in &KNOWN {
                headers.remove(name);
            }
        }
        if matches!(self.format, HeaderFormat::XRateLimit | HeaderFormat::Both) {
            self.write_x(decision, binding, headers);
        }
        if matches!(self.format, HeaderFormat::Draft | HeaderFormat::Both) {
            self.write_draft(decision, binding, headers);
        }
        true
    }

    fn write_x(&self, decision: &Decision, binding: &Verdict, headers: &mut HeaderMap) {
        headers.insert(X_LIMIT, of_rule(&binding.rule).burst.clone());
        headers.insert(X_REMAINING, number(binding.standing().remaining()));
        if let Some(micros) = binding.reset_micros(decision.is_allowed()) {
            let moment = match self.reset {
                ResetFormat::EpochSeconds => {
                    let moment = decision.now().as_micros().saturating_add(micros);
                    moment.div_ceil(MICROS_PER_SEC)
                }
                ResetFormat::DeltaSeconds => micros.div_ceil(MICROS_PER_SEC),
            };
            headers.insert(X_RESET, number(moment));
        }
    }

    fn write_draft(&self, decision: &Decision, binding: &Verdict, headers: &mut HeaderMap) {
        let allowed = decision.is_allowed();
        let mut text = Text::new();
        if allowed {
            item(&mut text, binding, true);
        } else {
            for verdicts in decision.by_limit() {
                let denying = verdicts.iter().filter(|verdict| verdict.denies());
                if let Some(verdict) = denying.max_by_key(|verdict| wait(verdict)) {
                    item(&mut text, verdict, false);
                }
            }
        }
        if let Some(value) = policy_value(decision) {
            headers.insert(POLICY, value);
        }
        if let Ok(value) = HeaderValue::from_bytes(&text) {
            headers.insert(STATE, value);
        }
    }
}

/// A wait that never ends is the longest.
fn wait(verdict: &Verdict) -> Duration {
    verdict.standing().wait().unwrap_or(Duration::MAX)
}

/// The fields that [`finish`] adds.
pub(super) const FINISH: usize = 2;

/// Ends an answer that does not come from the service: when to come back, and that no cache may keep
/// it (RFC 6585 §4). What a responder has set stays.
pub(super) fn finish(retry_after: Option<u64>, headers: &mut HeaderMap) {
    if let Some(secs) = retry_after {
        headers.entry(RETRY_AFTER).or_insert_with(|| number(secs));
    }
    headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
}

/// Text of a field, put together without the formatting machinery, which would cost more than the
/// decision.
type Text = SmallVec<[u8; 128]>;

/// The draft's `RateLimit` item of one limit.
fn item(text: &mut Text, verdict: &Verdict, allowed: bool) {
    begin(text, verdict.name());
    let left = if allowed { verdict.standing().remaining().min(MAX_INTEGER) } else { 0 };
    parameter(text, b";r=", left);
    if let Some(micros) = verdict.reset_micros(allowed) {
        parameter(text, b";t=", micros.div_ceil(MICROS_PER_SEC));
    }
}

/// The policy field: all enforced limits that applied.
fn policy_value(decision: &Decision) -> Option<HeaderValue> {
    let verdicts = decision.by_limit().filter_map(<[_]>::first);
    let mut rules = verdicts.filter(|verdict| !verdict.is_shadow()).map(|verdict| &verdict.rule);
    let first = &of_rule(rules.next()?).policy;
    let Some(second) = rules.next() else { return Some(first.clone()) };
    let mut text = Text::from_slice(first.as_bytes());
    for rule in iter::once(second).chain(rules) {
        text.extend_from_slice(b", ");
        text.extend_from_slice(of_rule(rule).policy.as_bytes());
    }
    HeaderValue::from_bytes(&text).ok()
}

/// What is the same for all answers of a limit, made when it is first needed.
fn of_rule(rule: &Rule) -> &RuleFields {
    rule.fields.get_or_init(|| {
        let (units, window) = rule.quota.window();
        let mut text = Text::new();
        begin(&mut text, &rule.name);
        parameter(&mut text, b";q=", units.min(MAX_INTEGER));
        parameter(&mut text, b";w=", window);
        // Names of limits are visible ASCII.
        let policy = HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static(""));
        RuleFields { policy, burst: number(rule.quota.capacity()) }
    })
}

/// Begins the item of a limit. Names have no character that needs escaping.
fn begin(text: &mut Text, name: &str) {
    text.extend_from_slice(if text.is_empty() { b"\"" } else { b", \"" });
    text.extend_from_slice(name.as_bytes());
    text.push(b'"');
}

fn parameter(text: &mut Text, name: &[u8], value: u64) {
    text.extend_from_slice(name);
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A number as a value: without an allocation where it is small, as most are that a person sees, and
/// with one elsewhere, where `HeaderValue::from` makes two.
fn number(number: u64) -> HeaderValue {
    let small = usize::try_from(number).ok().and_then(|number| SMALL.get(number));
    if let Some((digits, unused)) = small
        && let Ok(text) = std::str::from_utf8(&digits[*unused..])
    {
        return HeaderValue::from_static(text);
    }
    // Digits are valid.
    HeaderValue::from_str(itoa::Buffer::new().format(number)).unwrap_or_else(|_| number.into())
}

/// The digits of small numbers, behind so many bytes that are not theirs.
static SMALL: [([u8; 3], usize); 1_000] = {
    let mut table = [([0; 3], 0); 1_000];
    let mut number = 0;
    while number < table.len() {
        let digits = [number / 100, number / 10 % 10, number % 10];
        let unused = if number < 10 { 2 } else { (number < 100) as usize };
        table[number] =
            ([b'0' + digits[0] as u8, b'0' + digits[1] as u8, b'0' + digits[2] as u8], unused);
        number += 1;
    }
    table
};

/// Whether a field may be among [`KNOWN`].
fn is_known(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    // The first byte tells most others.
    matches!(name.first(), Some(b'x' | b'r'))
        && name.strip_prefix(b"x-").unwrap_or(name).starts_with(b"ratelimit")
}

/// Units that an upstream says are left, by any of the fields that say so.
fn upstream(headers: &HeaderMap) -> Option<u64> {
    let plain = [X_REMAINING, HeaderName::from_static("ratelimit-remaining")];
    let plain = plain.iter().filter_map(|name| leading_number(headers.get(name)?.to_str().ok()?));
    let draft = headers.get_all(STATE).iter().filter_map(|value| value.to_str().ok());
    let draft = draft
        .flat_map(|text| text.split(';'))
        .filter_map(|parameter| leading_number(parameter.trim().strip_prefix("r=")?));
    plain.chain(draft).min()
}

/// The number that a text begins with.
fn leading_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}
