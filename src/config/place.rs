//! Places in a configuration, and where they are in its text.

use std::{fmt, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue, Error},
};

/// The way to a value: `policy[0].limit[1].quota`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Item(usize),
}

impl Path {
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(Step::Field(name.to_owned()))
    }

    pub(super) fn item(&self, at: usize) -> Self {
        self.with(Step::Item(at))
    }

    fn has_field(&self, name: &str) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Field(field) if field == name))
    }

    fn with(&self, step: Step) -> Self {
        let mut longer = self.clone();
        longer.0.push(step);
        longer
    }

    /// The ways to the policy and the limit that it leads through, and the rest.
    fn split(&self) -> (Vec<(&'static str, usize, Self)>, Self) {
        let mut through = Vec::new();
        let mut rest = &self.0[..];
        for name in ["policy", "limit"] {
            let [Step::Field(field), Step::Item(at), more @ ..] = rest else { break };
            if field != name {
                break;
            }
            rest = more;
            let way = Self(self.0[..self.0.len() - rest.len()].to_vec());
            through.push((name, *at, way));
        }
        (through, Self(rest.to_vec()))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

/// A configuration as TOML.
pub(super) struct Document<'t> {
    text: &'t str,
    root: Spanned<DeTable<'t>>,
}

impl<'t> Document<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, Error> {
        DeTable::parse(text).map(|root| Self { text, root })
    }

    /// Whose place it is, and which of its values, in words, and where it begins.
    pub(super) fn describe(&self, path: &Path) -> (String, String, usize) {
        let (through, rest) = path.split();
        let whose: Vec<String> = through
            .iter()
            .map(|(what, at, way)| match self.value(&way.field("name")) {
                Some(Found { value: Some(DeValue::String(name)), .. }) => {
                    format!("{what} `{name}`")
                }
                _ => format!("{what} {}", at + 1),
            })
            .collect();
        let found = self.nearest(path);
        let value = match found.value {
            Some(value)
                if found.whole && !matches!(value, DeValue::Table(_) | DeValue::Array(_)) =>
            {
                let raw = self.text.get(found.span.clone()).unwrap_or_default();
                if raw.contains('\n') { String::new() } else { format!(" = {}", shown(raw, path)) }
            }
            _ => String::new(),
        };
        (whose.join(", "), format!("{rest}{value}"), found.span.start)
    }

    /// The innermost value, or name of one, at this place of the text.
    pub(super) fn path_at(&self, offset: usize) -> Path {
        let mut best = Path::default();
        in_table(self.root.get_ref(), &Path::default(), offset, &mut best);
        best
    }

    fn value(&self, path: &Path) -> Option<Found<'_, 't>> {
        Some(self.nearest(path)).filter(|found| found.whole)
    }

    /// What is there, or as much of the way to it as there is.
    fn nearest(&self, path: &Path) -> Found<'_, 't> {
        let mut found = Found { span: self.root.span(), value: None, whole: path.0.is_empty() };
        let mut table = Some(self.root.get_ref());
        for (at, step) in path.0.iter().enumerate() {
            let next = match (step, table, found.value) {
                (Step::Field(name), Some(table), _) => table.get(&**name),
                (Step::Item(item), _, Some(DeValue::Array(items))) => items.get(*item),
                _ => None,
            };
            let Some(next) = next else { return found };
            let value = next.get_ref();
            table = if let DeValue::Table(table) = value { Some(table) } else { None };
            found = Found { span: next.span(), value: Some(value), whole: at + 1 == path.0.len() };
        }
        found
    }
}

struct Found<'d, 't> {
    span: Range<usize>,
    value: Option<&'d DeValue<'t>>,
    whole: bool,
}

fn in_table(table: &DeTable<'_>, path: &Path, offset: usize, best: &mut Path) {
    for (name, value) in table {
        let path = path.field(name.get_ref());
        if name.span().contains(&offset) {
            best.clone_from(&path);
        }
        in_value(value, path, offset, best);
    }
}

fn in_value(value: &Spanned<DeValue<'_>>, path: Path, offset: usize, best: &mut Path) {
    if value.span().contains(&offset) {
        best.clone_from(&path);
    }
    match value.get_ref() {
        DeValue::Table(table) => in_table(table, &path, offset, best),
        DeValue::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                in_value(item, path.item(at), offset, best);
            }
        }
        _ => {}
    }
}

/// A value as messages show it. The key of somebody may be a secret.
fn shown(raw: &str, path: &Path) -> String {
    let of_somebody = ["allow", "deny", "overrides"].iter().any(|list| path.has_field(list))
        && ["key", "keys"].iter().any(|field| path.has_field(field));
    match raw.trim_matches(['"', '\'']).split_once(':') {
        Some((kind @ ("api_key" | "bearer" | "apikey"), _)) if of_somebody => {
            format!("\"{kind}:…\"")
        }
        None if of_somebody => "…".to_owned(),
        _ => raw.to_owned(),
    }
}
