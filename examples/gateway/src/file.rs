//! Reading files that somebody else may put there, or take away.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

/// What a regular file has, of which there may be so many bytes.
///
/// Of others, such as pipes, nobody knows when they are read; and it blocks, as disks do.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}
