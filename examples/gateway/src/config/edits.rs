//! What the command line says instead of the file, written into its text, so that there is one way only to
//! read a configuration.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, TomlError, Value, value};

/// Values, by where they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(Vec<&'static str>, Edit)>);

#[derive(Clone, Debug)]
enum Edit {
    Set(Value),
    Remove,
}

impl Edits {
    /// Sets a value at `first.second.third`; a number is a place in an array of tables.
    pub(crate) fn set(&mut self, at: &'static str, value: impl Into<Value>) {
        self.0.push((at.split('.').collect(), Edit::Set(value.into())));
    }

    pub(crate) fn list(&mut self, at: &'static str, items: &[String]) {
        self.set(at, items.iter().collect::<Array>());
    }

    pub(crate) fn remove(&mut self, at: &'static str) {
        self.0.push((at.split('.').collect(), Edit::Remove));
    }

    pub(super) fn has_redis(&self) -> bool {
        self.0.iter().any(|(way, _)| way[..] == ["redis", "url"])
    }

    /// All else in the text stays where it is, comments too.
    pub(super) fn apply(&self, text: &str) -> Result<String, TomlError> {
        if self.0.is_empty() {
            return Ok(text.to_owned());
        }
        let mut document: DocumentMut = text.parse()?;
        for (way, edit) in &self.0 {
            let Some((last, tables)) = way.split_last() else { continue };
            let Some(table) = table(document.as_table_mut(), tables) else { continue };
            match (edit, table.get_mut(last).and_then(Item::as_value_mut)) {
                (Edit::Set(new), Some(old)) => {
                    let decor = old.decor().clone();
                    *old = new.clone();
                    *old.decor_mut() = decor;
                }
                (Edit::Set(new), None) => drop(table.insert(last, value(new.clone()))),
                (Edit::Remove, _) => drop(table.remove(last)),
            }
        }
        Ok(document.to_string())
    }
}

/// The table at the end of the way, which is made where it is missing.
fn table<'d>(from: &'d mut dyn TableLike, way: &[&str]) -> Option<&'d mut dyn TableLike> {
    let Some((name, rest)) = way.split_first() else { return Some(from) };
    let item = from.entry(name).or_insert_with(|| Item::Table(Table::new()));
    let place = rest.split_first().and_then(|(at, rest)| Some((at.parse().ok()?, rest)));
    match place {
        Some((at, rest)) => table(item.as_array_of_tables_mut()?.get_mut(at)?, rest),
        None => table(item.as_table_like_mut()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_and_comments_stay() {
        let mut edits = Edits::default();
        edits.set("listen", "[::]:80");
        edits.set("redis.url", "redis://a/");
        edits.set("policy.1.limit.0.quota", "9/s");
        edits.list("proxies.trusted", &["10.0.0.1".to_owned()]);
        edits.remove("policy.0.on_failure");
        let text = "# one\nlisten = \"x\" # two\n\n[[policy]]\non_failure = \"deny\"\n\n[[policy]]\n\
                    [[policy.limit]]\nquota = \"1/s\" # three\n";
        assert_eq!(
            edits.apply(text).unwrap(),
            "# one\nlisten = \"[::]:80\" # two\n\n[[policy]]\n\n[[policy]]\n\
             [[policy.limit]]\nquota = \"9/s\" # three\n\n[redis]\nurl = \"redis://a/\"\n\n\
             [proxies]\ntrusted = [\"10.0.0.1\"]\n"
        );
        assert_eq!(Edits::default().apply("# as it is").unwrap(), "# as it is");
    }
}
