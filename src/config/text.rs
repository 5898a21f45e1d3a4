//! What texts in a configuration mean. Errors say what would be right.

use std::time::Duration;

use http::StatusCode;
use toml::value::{Date, Datetime, Offset, Time};

use crate::{
    algorithm::Calendar,
    failure::StoreErrorKind,
    policy::{OnFailure, OnMissingKey},
    time::{MICROS_PER_SEC, Timestamp},
};

/// Units per period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) quantity: u64,
    pub(super) period: Period,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Period {
    Length(Duration),
    Calendar(Calendar),
}

/// None for `unlimited`.
pub(super) fn rate_or_none(text: &str) -> Result<Option<Rate>, String> {
    match text {
        "unlimited" => Ok(None),
        _ => rate(text).map(Some).map_err(|what| what + "; or `unlimited`"),
    }
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let (quantity, period) = text.split_once('/').ok_or(
        "it must be a number of units, a slash and a period, such as `20/s`, `5/10s` or `1000/h`",
    )?;
    let quantity =
        whole(quantity).ok_or("before the slash there must be a whole number, as in `20/s`")?;
    let period = match period {
        "day" => Period::Calendar(Calendar::Day),
        "week" => Period::Calendar(Calendar::Week),
        "month" => Period::Calendar(Calendar::Month),
        _ => {
            let count =
                if period.starts_with(|digit: char| digit.is_ascii_digit()) { "" } else { "1" };
            let length = span(&format!("{count}{period}")).ok_or(
                "the period must be a length such as `s`, `10s`, `m`, `h` or `d`, or, for the \
                 algorithm `calendar`, `day`, `week` or `month`",
            )?;
            Period::Length(length)
        }
    };
    Ok(Rate { quantity, period })
}

pub(super) fn length(text: &str) -> Result<Duration, &'static str> {
    span(text).ok_or("it must be a number and `s`, `m`, `h` or `d`, such as `90s` or `1h`")
}

fn span(text: &str) -> Option<Duration> {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let count = whole(&text[..text.len() - unit.len()])?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(count)),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    // What has no place here is far out of all bounds, which are checked where they are known.
    Some(Duration::from_secs(count.saturating_mul(seconds)))
}

/// A number of digits alone; one that is too large is the largest.
fn whole(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

pub(super) fn on_failure(text: &str) -> Result<OnFailure, &'static str> {
    match text {
        "allow" => Ok(OnFailure::Allow),
        "deny" => Ok(OnFailure::Deny),
        "local" => Ok(OnFailure::Local { share: 1.0 }),
        _ => {
            let share = text.strip_prefix("local:").ok_or(
                "it must be `allow`, `deny`, `local`, or `local:` and a share, such as `local:0.25`",
            )?;
            let share = share.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
            Ok(OnFailure::Local { share: share.ok_or("the share must be more than 0, at most 1")? })
        }
    }
}

/// The kind of failure of this name.
pub(super) fn kind(name: &str) -> Result<StoreErrorKind, String> {
    let found = StoreErrorKind::ALL.iter().find(|kind| kind.as_str() == name);
    found.copied().ok_or_else(|| {
        let known: Vec<_> =
            StoreErrorKind::ALL.iter().map(|kind| format!("`{}`", kind.as_str())).collect();
        format!("no kind of failure; there are {} and `otherwise`", known.join(", "))
    })
}

pub(super) fn on_missing_key(text: &str) -> Result<OnMissingKey, &'static str> {
    match text {
        "reject" => Ok(OnMissingKey::Reject),
        "skip" => Ok(OnMissingKey::Skip),
        "anonymous" => Ok(OnMissingKey::Anonymous),
        _ => {
            let status = text.strip_prefix("reject:").ok_or(
                "it must be `reject`, `reject:` and a status such as `reject:403`, `skip` or \
                 `anonymous`",
            )?;
            let status = status.parse().ok().and_then(client_error);
            status.map(OnMissingKey::RejectWith).ok_or("the status must be one from 400 to 499")
        }
    }
}

pub(super) fn client_error(status: u16) -> Option<StatusCode> {
    StatusCode::from_u16(status).ok().filter(StatusCode::is_client_error)
}

pub(super) fn moment(text: &str) -> Result<Timestamp, &'static str> {
    const FORM: &str = "it must be a date, or a date and time with its offset from UTC, such as \
                        `2027-01-01` or `2027-01-01T00:00:00Z`";
    let Ok(Datetime { date: Some(date), time, offset }) = text.parse() else { return Err(FORM) };
    let east = match offset {
        Some(Offset::Z) => 0,
        Some(Offset::Custom { minutes }) => i64::from(minutes) * 60,
        None if time.is_none() => 0,
        None => return Err(FORM),
    };
    let second = days(date) * 86_400 + time.map_or(0, second_of_day) - east;
    let second = u64::try_from(second).unwrap_or(0);
    Ok(Timestamp::from_micros(second * MICROS_PER_SEC))
}

fn second_of_day(time: Time) -> i64 {
    let (hour, minute, second) = (time.hour, time.minute, time.second.unwrap_or(0));
    (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second)
}

/// Days since the beginning of 1970. What lies before is over, whenever that was.
fn days(Date { year, month, day }: Date) -> i64 {
    let leap =
        |year: u16| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let years = (1970..year).map(|year| if leap(year) { 366 } else { 365 });
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::from(month.saturating_sub(1));
    years.sum::<i64>() + months.iter().take(before).sum::<i64>() + i64::from(day) - 1
}
