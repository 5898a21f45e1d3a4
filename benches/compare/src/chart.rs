//! A picture of who checks how many keys per second.

use std::{error::Error, path::Path};

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::{
    report::rate,
    results::{Group, Load, group, names::*},
    series::Series,
};

/// Those that several instances could share a limit through; what stays in one process needs no
/// network, and would leave no room for the others.
const SHOWN: [&str; 7] = [LEASE, TOLLGATE, LAYER, FORGETFUL, RAW, PEER, CHECKOUT];

const LEVELS: [(usize, RGBColor); 2] =
    [(64, RGBColor(158, 188, 218)), (256, RGBColor(49, 102, 158))];
const WIDTH: u32 = 860;
const LEFT: i32 = 270;
const RIGHT: i32 = 70;
const TOP: i32 = 84;
const BAR: i32 = 15;
const ROW: i32 = 46;

/// Draws it, if both workloads were measured.
pub(crate) fn draw(groups: &[Group], to: &Path) -> Result<(), Box<dyn Error>> {
    let level = |(callers, colour)| Some((group(groups, Load::Many, callers)?, callers, colour));
    let levels: Vec<_> = LEVELS.into_iter().filter_map(level).collect();
    let tool = levels.iter().find_map(|(group, ..)| group.best_tool());
    let names: Vec<&str> = SHOWN.into_iter().chain(tool.map(|tool| tool.name.as_str())).collect();
    let per_second = |series: &Series| series.median(|round| round.rate);
    let found = |name| levels.iter().filter_map(move |(group, ..)| group.find(name));
    let most = names.iter().flat_map(|name| found(*name)).map(per_second).fold(1.0, f64::max);

    let height = TOP + ROW * names.len() as i32 + 16;
    let root = SVGBackend::new(to, (WIDTH, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let label = |size: i32, at: HPos| {
        let font = ("sans-serif", size).into_font().color(&RGBColor(40, 40, 40));
        font.pos(Pos::new(at, VPos::Center))
    };
    let title = "Checks per second, 10,000 keys, one Redis";
    root.draw(&Text::new(title, (16, 24), label(22, HPos::Left)))?;
    for (at, (_, callers, colour)) in (0..).zip(&levels) {
        let x = LEFT + at * 130;
        root.draw(&Rectangle::new([(x, 48), (x + 14, 62)], colour.filled()))?;
        let text = format!("{callers} callers");
        root.draw(&Text::new(text, (x + 22, 55), label(17, HPos::Left)))?;
    }
    let scale = f64::from(WIDTH as i32 - LEFT - RIGHT) / most;
    for (row, name) in (0..).zip(&names) {
        let top = TOP + row * ROW;
        let middle = top + BAR + 1;
        root.draw(&Text::new(*name, (LEFT - 12, middle), label(17, HPos::Right)))?;
        for (at, (group, _, colour)) in (0..).zip(&levels) {
            let Some(series) = group.find(name) else { continue };
            let y = top + at * (BAR + 2);
            let end = LEFT + (per_second(series) * scale) as i32;
            root.draw(&Rectangle::new([(LEFT, y), (end, y + BAR)], colour.filled()))?;
            let at = (end + 6, y + BAR / 2 + 1);
            root.draw(&Text::new(rate(series), at, label(16, HPos::Left)))?;
        }
    }
    root.present()?;
    Ok(())
}
