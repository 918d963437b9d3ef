//! Prints `docs/parity.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(rubelet_parity::parity_markdown().as_bytes())
}
