//! API keys that are known beforehand.

mod keys;
mod layer;

pub use self::{
    keys::{ApiKeys, ApiKeysBuilder},
    layer::ApiKeyLayer,
};
