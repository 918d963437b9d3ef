//! Prints a reference page: `flags`, `configuration` or `help`.
#![expect(clippy::print_stdout, reason = "printing is all it does")]

use rubelet_config::{configuration_markdown, flags_help, flags_markdown};

fn main() {
    for page in std::env::args().skip(1) {
        match page.as_str() {
            "flags" => print!("{}", flags_markdown()),
            "configuration" => print!("{}", configuration_markdown()),
            "help" => print!("{}", flags_help()),
            other => println!("no page {other:?}; there are flags, configuration and help"),
        }
    }
}
