//! Values with units.

use std::time::Duration;

pub(super) fn time(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "it must be a number and a unit of ms, s, m or h, such as 500ms or 5s";
    let (number, unit) = split(text).ok_or(FORM)?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3_600))),
        _ => Err(FORM),
    }
}

pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    const FORM: &str = "it must be a number of bytes, or one with k, m or g, such as 64k or 100m";
    let (number, unit) = split(text).ok_or(FORM)?;
    let unit = match unit {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return Err(FORM),
    };
    Ok(number.saturating_mul(unit))
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Some((whole(digits)?, &text[digits.len()..]))
}

/// A number of digits alone; one that is too large is the largest.
pub(super) fn whole(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for odd in ["", "5", "s", "1.5s", "-1s", "5 s", "5d"] {
            assert!(time(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("10"), Ok(10));
        assert_eq!(size("64k"), Ok(65_536));
        assert_eq!(size("99999999999999g"), Ok(u64::MAX));
        for odd in ["", "k", "1.5k", "-1", "1t", "1kb"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }
}
