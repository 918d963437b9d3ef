//! The demo's explanations for its user.

/// Begins a new part.
pub(super) fn step(what: &str) {
    println!("\n--> {what}");
}

/// Shows text that belongs to the part, line by line.
pub(super) fn show(text: &str) {
    for line in text.lines() {
        println!("    {line}");
    }
}
