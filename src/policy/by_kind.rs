use super::OnFailure;
use crate::failure::StoreErrorKind;

/// What happens after each kind of failure, made by [`OnFailure::by`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByKind([Plain; StoreErrorKind::COUNT]);

/// A table cannot hold tables.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Allow,
    Deny,
    Local(f64),
}

impl ByKind {
    pub(super) fn new(choose: impl Fn(StoreErrorKind) -> OnFailure) -> Self {
        let mut table = [Plain::Allow; StoreErrorKind::COUNT];
        for kind in StoreErrorKind::ALL {
            table[kind.place()] = match choose(*kind).of(*kind) {
                OnFailure::Allow | OnFailure::ByKind(_) => Plain::Allow,
                OnFailure::Deny => Plain::Deny,
                OnFailure::Local { share } => Plain::Local(share),
            };
        }
        Self(table)
    }

    pub(super) const fn of(&self, kind: StoreErrorKind) -> OnFailure {
        match self.0[kind.place()] {
            Plain::Allow => OnFailure::Allow,
            Plain::Deny => OnFailure::Deny,
            Plain::Local(share) => OnFailure::Local { share },
        }
    }
}
