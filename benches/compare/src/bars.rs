//! What this crate has to reach beside the others.

use crate::{
    report::line,
    results::{Group, Load, group, names::*},
    series::{Figure, Round, Series},
};

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    MoreThan(f64),
    AtMost(f64),
    /// Only told.
    None,
}

impl Bound {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::MoreThan(bound) => figure > bound,
            Self::AtMost(bound) => figure <= bound,
            Self::None => true,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::MoreThan(bound) => write!(f, "> {bound}"),
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::None => Ok(()),
        }
    }
}

struct Bar {
    what: String,
    bound: Bound,
    measured: Option<Figure>,
    /// The others' processor time per check by ours, which a busy machine changes less.
    cpu: Option<Figure>,
}

const RATE: fn(&Round) -> f64 = |round| round.rate;
const CPU: fn(&Round) -> f64 = |round| round.cpu.whole();
const P50: fn(&Round) -> f64 = |round| round.p50;
const P99: fn(&Round) -> f64 = |round| round.p99;

/// A table of all bars, with the ratios of medians and, in brackets, their ranges within rounds.
pub(crate) fn table(groups: &[Group]) -> String {
    let mut text =
        "\n## Bars\n\n| what | needed | measured | met | CPU per check, theirs / ours |\n|---|---|---|---|---|\n".to_owned();
    for Bar { what, bound, measured, cpu } in all(groups) {
        let met = match (bound, measured) {
            (_, None) => "not measured",
            (Bound::None, _) => "",
            (_, Some(figure)) if bound.is_met(figure.medians) => "yes",
            _ => "no",
        };
        let say = |figure: Option<Figure>| figure.map_or(String::new(), |it| it.to_string());
        line(&mut text, &[&what, &bound.to_string(), &say(measured), met, &say(cpu)]);
    }
    text
}

fn all(groups: &[Group]) -> Vec<Bar> {
    use Bound::{AtLeast, AtMost, MoreThan};
    let own = [
        (Load::Many, 64, LAYER, PEER, AtLeast(1.8)),
        (Load::Many, 64, TOLLGATE, CHECKOUT, AtLeast(4.5)),
        (Load::Many, 256, LAYER, PEER, AtLeast(1.9)),
        (Load::Hot, 256, LAYER, PEER, AtLeast(4.5)),
        (Load::Hot, 64, LAYER_LEASE, PEER, AtLeast(8.0)),
        (Load::Flood, 64, LAYER, PEER, AtLeast(8.0)),
        (Load::Flood, 64, LAYER, BARE, AtLeast(0.4)),
        (Load::Flood, 64, LAYER, GOVERNOR, AtLeast(10.0)),
        (Load::Memory, 1, X_FIELDS, GOVERNOR, AtLeast(1.0)),
        (Load::Sizes, 64, M1, K1, AtLeast(0.85)),
    ];
    let ratio = |(load, callers, mine, theirs, bound)| {
        let what = format!("{}: {mine} / {theirs}", place(load, callers));
        let pair = pair(groups, load, callers, mine, theirs);
        let measured = pair.map(|(mine, theirs)| mine.by(theirs, RATE));
        Bar { what, bound, measured, cpu: pair.map(|(mine, theirs)| theirs.by(mine, CPU)) }
    };
    let mut bars: Vec<Bar> = own.into_iter().map(ratio).collect();

    let most = group(groups, Load::Many, 256);
    let tool = most.and_then(|most| Some((most.find(TOLLGATE)?, most.best_tool()?)));
    let name = tool.map_or("the server's benchmark tool", |(_, tool)| &tool.name);
    bars.push(Bar {
        what: format!("{}: {TOLLGATE} / {name}", place(Load::Many, 256)),
        bound: MoreThan(1.0),
        measured: tool.map(|(mine, tool)| mine.by(tool, RATE)),
        cpu: tool.map(|(mine, tool)| tool.by(mine, CPU)),
    });
    let mut late = |callers, theirs, of, which, bound| {
        let pair = pair(groups, Load::Many, callers, TOLLGATE, theirs);
        bars.push(Bar {
            what: format!("{}: {which} of {TOLLGATE} / {theirs}", place(Load::Many, callers)),
            bound,
            measured: pair.map(|(mine, theirs)| mine.by(theirs, of)),
            cpu: None,
        });
    };
    late(1, RAW_ONE, P50, "p50", AtMost(1.1));
    late(64, RAW, P99, "p99", Bound::None);
    for (mine, most) in [(NO_FIELDS, 250.0), (ALL_FIELDS, 700.0)] {
        let pair = pair(groups, Load::Memory, 1, mine, BARE);
        bars.push(Bar {
            what: format!("in memory: {mine}, ns more than {BARE}"),
            bound: AtMost(most),
            measured: pair.map(|(mine, bare)| mine.less(bare, Round::nanos)),
            cpu: None,
        });
    }
    bars
}

fn pair<'a>(
    groups: &'a [Group],
    load: Load,
    callers: usize,
    mine: &str,
    theirs: &str,
) -> Option<(&'a Series, &'a Series)> {
    let group = group(groups, load, callers)?;
    Some((group.find(mine)?, group.find(theirs)?))
}

fn place(load: Load, callers: usize) -> String {
    let load = match load {
        Load::Many => "10,000 keys",
        Load::Hot => "one hot key",
        Load::Flood => "denials",
        Load::Memory => return "in memory".to_owned(),
        Load::Sizes => "more keys",
    };
    let s = if callers == 1 { "" } else { "s" };
    format!("{load}, {callers} caller{s}")
}
