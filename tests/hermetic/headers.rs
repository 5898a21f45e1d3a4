//! What clients are told about their limits, and that it is true.

mod binding;
mod charged_once;
mod draft;
mod formats;
mod fractions;
mod respond;
mod retry;
mod several_keys;
mod stacked;
mod undecided;
mod upstream;
mod x_fields;
