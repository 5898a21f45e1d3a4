use std::fmt;

use crate::policy::PolicySet;

/// What differs between two sets of policies, by the names of the policies, in order.
///
/// A policy that a program has built itself is taken to have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Those that are new.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Those that are not what they were.
    pub changed: Vec<String>,
}

impl Changes {
    /// What differs in `new`.
    #[must_use]
    pub fn between(old: &PolicySet, new: &PolicySet) -> Self {
        let absent = |these: &PolicySet, those: &PolicySet| {
            let names = these.policies().map(|policy| policy.name());
            names.filter(|name| those.policy(name).is_none()).map(str::to_owned).collect()
        };
        let changed = new.policies().filter(|policy| {
            old.policy(policy.name())
                .is_some_and(|old| old.origin().is_none() || old.origin() != policy.origin())
        });
        Self {
            added: absent(new, old),
            removed: absent(old, new),
            changed: changed.map(|policy| policy.name().to_owned()).collect(),
        }
    }

    /// Whether nothing differs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// `added: login; changed: api`, or `nothing`.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let lists =
            [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)];
        let mut between = "";
        for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "{between}{what}: {}", names.join(", "))?;
            between = "; ";
        }
        Ok(())
    }
}
