//! Tables.

use std::fmt::Write as _;

use crate::{
    results::{Group, Load, names},
    series::{Round, Series},
    workloads::Size,
};

const HEAD: &str = "\
| contender | checks/s | p50 µs | p99 µs | CPU µs per check | of these the server's | held against it, checks/s |
|---|---:|---:|---:|---:|---:|---|
";

/// What contenders of one workload did.
pub(crate) fn table(group: &Group) -> String {
    let callers = match group.callers {
        1 => "1 caller".to_owned(),
        callers => format!("{callers} callers"),
    };
    let title = match group.load {
        Load::Many => format!("10,000 keys, all admitted, {callers}"),
        Load::Hot => format!("One hot key, all admitted, {callers}"),
        Load::Flood => format!("A flood of denials over 100 keys, {callers}, through the layer"),
        Load::Memory => "Layers in memory, 10,000 keys, one thread".to_owned(),
        Load::Sizes => format!("More and more keys, {callers}"),
    };
    let body = if group.load == Load::Memory { memory(group) } else { shared(group) };
    let others = group.others * 100.0;
    format!("\n## {title}\n\nOthers on this machine had {others:.0} % of it meanwhile.\n\n{body}")
}

fn shared(group: &Group) -> String {
    let mut text = HEAD.to_owned();
    for one in &group.series {
        let against = match group.find(one.beside) {
            Some(other) if other.name != one.name => {
                format!("{}: {}", other.name, other.by(one, |round| round.rate))
            }
            _ => String::new(),
        };
        let median = |of: fn(&Round) -> f64, places| number(one.median(of), places);
        line(
            &mut text,
            &[
                &one.name,
                &median(|round| round.rate, 0),
                &median(|round| round.p50, 0),
                &median(|round| round.p99, 0),
                &median(|round| round.cpu.whole(), 2),
                &median(|round| round.cpu.server, 2),
                &against,
            ],
        );
    }
    text
}

fn memory(group: &Group) -> String {
    let mut text = "| service | ns per request | more than bare, ns |\n|---|---:|---|\n".to_owned();
    let bare = group.find(names::BARE);
    for one in &group.series {
        let added = bare.filter(|bare| bare.name != one.name);
        let added = added.map_or(String::new(), |bare| one.less(bare, Round::nanos).to_string());
        line(&mut text, &[&one.name, &number(one.median(Round::nanos), 0), &added]);
    }
    text
}

/// What keys take at the server.
pub(crate) fn sizes(sizes: &[Size]) -> String {
    let mut text =
        "\n| keys | bytes per key, tables included (`INFO memory`) | `MEMORY USAGE` of one |\n\
                    |---:|---:|---:|\n"
            .to_owned();
    for size in sizes {
        // Few keys are less than what the server's buffers come and go by.
        let told = size.keys >= 100_000;
        let each = if told { number(size.all / size.keys as f64, 0) } else { String::new() };
        line(&mut text, &[&size.keys.to_string(), &each, &size.one]);
    }
    text
}

pub(crate) fn line(text: &mut String, cells: &[&str]) {
    _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// A median, or nothing where it was not measured.
fn number(number: f64, places: usize) -> String {
    if number.is_finite() { format!("{number:.places$}") } else { String::new() }
}

/// A rate as people say it.
pub(crate) fn rate(series: &Series) -> String {
    let rate = series.median(|round| round.rate);
    if rate < 1e6 { format!("{:.0}k", rate / 1e3) } else { format!("{:.1}M", rate / 1e6) }
}
