//! Hashes of what must not be readable in the store: 128 bits of BLAKE3.

use std::{fmt, sync::LazyLock};

use blake3::{
    Hasher,
    hazmat::{ContextKey, HasherExt, hash_derive_key_context},
};

/// Changing either context gives every caller fresh limits.
const CONTEXT: &str = "tollgate 2025-11-29 identities";
/// Changing this one makes all API keys unknown.
const KNOWN_CONTEXT: &str = "tollgate 2025-11-30 known API keys";
const HASH_KEY_CONTEXT: &str = "tollgate 2025-11-29 key for hashing identities";

/// A hasher that no other program uses, so that a digest says nothing elsewhere.
pub(super) fn hasher() -> Hasher {
    static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(CONTEXT));
    Hasher::new_from_context_key(&KEY)
}

pub(super) fn digest(bytes: &[u8]) -> Hex {
    hex(hasher().update(bytes))
}

/// What a configuration has of an API key, of which nothing in a store can be told.
pub(crate) fn known_digest(secret: &[u8]) -> [u8; 32] {
    static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(KNOWN_CONTEXT));
    *Hasher::new_from_context_key(&KEY).update(secret).finalize().as_bytes()
}

/// The first 128 bits of what was hashed, in lower case.
pub(super) fn hex(hasher: &Hasher) -> Hex {
    let mut digits = [0; 32];
    let hash = hasher.finalize();
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash.as_bytes()) {
        pair.copy_from_slice(&hex_byte(*byte));
    }
    Hex(digits)
}

pub(super) const fn hex_byte(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// 32 hexadecimal digits.
pub(super) struct Hex([u8; 32]);

impl Hex {
    pub(super) fn as_str(&self) -> &str {
        // All are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A secret of the service, without which nobody can tell what was hashed.
#[derive(Clone)]
pub(super) struct HashKey([u8; blake3::KEY_LEN]);

impl HashKey {
    pub(super) fn new(secret: &[u8]) -> Self {
        Self(blake3::derive_key(HASH_KEY_CONTEXT, secret))
    }

    pub(super) fn digest(&self, bytes: &[u8]) -> Hex {
        hex(Hasher::new_keyed(&self.0).update(bytes))
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}
