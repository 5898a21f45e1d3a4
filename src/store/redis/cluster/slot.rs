//! Which slot of a cluster a name lies in: CRC16 (XMODEM) of what stands in its first braces, if there is
//! anything, or else of all of it.

/// Slots of a cluster.
pub(super) const SLOTS: u16 = 16_384;

const TABLE: [u16; 256] = table();

/// The slot of the state of this name, behind the store's prefix.
pub(super) fn slot(prefix: &str, name: &[u8]) -> u16 {
    // A prefix has no braces.
    let crc = match tag(name) {
        Some(tag) => crc(0, tag),
        None => crc(crc(crc(0, prefix.as_bytes()), b":"), name),
    };
    crc % SLOTS
}

/// The slot of a whole name, with its prefix.
pub(super) fn name_slot(name: &[u8]) -> u16 {
    crc(0, tag(name).unwrap_or(name)) % SLOTS
}

/// What stands in the first braces.
fn tag(name: &[u8]) -> Option<&[u8]> {
    let start = name.iter().position(|byte| *byte == b'{')? + 1;
    let length = name[start..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &name[start..start + length])
}

fn crc(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ *byte)])
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut at: u16 = 0;
    while at < 256 {
        let mut crc = at << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[at as usize] = crc;
        at += 1;
    }
    table
}
