//! Prints the page `docs/fields.md`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().write_all(rubelet_api::fields::markdown().as_bytes())
}
