//! Text with aligned cells: a cell ends at a tab, and adjacent lines with that cell share its
//! width.

use super::super::terminal::visible;

/// Spaces after the widest cell.
const GAP: usize = 2;

/// Lines in progress.
#[derive(Debug, Default)]
pub(super) struct Text {
    lines: Vec<String>,
}

impl Text {
    /// Adds a line, indented by two spaces per level. Tabs end cells.
    pub(super) fn line(&mut self, level: usize, line: impl AsRef<str>) {
        self.lines
            .push(format!("{}{}", "  ".repeat(level), line.as_ref()));
    }

    /// Adds `key: value`. Further lines of a value are below its first one.
    pub(super) fn field(&mut self, level: usize, key: &str, value: impl AsRef<str>) {
        let value = value.as_ref().trim_end().replace('\t', " ");
        let mut lines = value.split('\n');
        self.line(
            level,
            format!("{key}:\t{}", lines.next().unwrap_or_default()),
        );
        for more in lines {
            self.line(level, format!("\t{more}"));
        }
    }

    /// Adds `key:` with one entry per line behind it, or `<none>`.
    pub(super) fn entries(&mut self, key: &str, entries: impl IntoIterator<Item = String>) {
        let mut head = format!("{key}:");
        let mut empty = true;
        for entry in entries {
            self.line(0, format!("{head}\t{entry}"));
            head.clear();
            empty = false;
        }
        if empty {
            self.line(0, format!("{head}\t<none>"));
        }
    }

    /// The lines with their cells padded.
    pub(super) fn finish(self) -> String {
        let mut rows: Vec<Vec<String>> = self
            .lines
            .iter()
            .map(|line| line.split('\t').map(visible).collect())
            .collect();
        align(&mut rows, 0);
        let mut text = String::new();
        for row in rows {
            text.push_str(row.concat().trim_end());
            text.push('\n');
        }
        text
    }
}

/// Pads the cells of one column, for each block of adjacent lines that have the cell, and within
/// each block the columns after it.
fn align(rows: &mut [Vec<String>], column: usize) {
    // The last cell of a line is not padded: nothing follows it.
    for block in rows.chunk_by_mut(|a, b| (a.len() > column + 1) == (b.len() > column + 1)) {
        if block[0].len() <= column + 1 {
            continue;
        }
        let width = block
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
            + GAP;
        for row in block.iter_mut() {
            let blanks = width - row[column].chars().count();
            row[column].push_str(&" ".repeat(blanks));
        }
        align(block, column + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_share_their_columns() {
        let mut text = Text::default();
        text.field(0, "Name", "web");
        text.field(0, "Namespace", "default\nmore");
        text.line(0, "Containers:");
        text.line(1, "a:");
        text.field(2, "Image", "x");
        text.line(2, "Env:\t<none>\t(odd)");
        text.entries("Labels", ["a=b".to_owned(), "c=d".to_owned()]);
        text.entries("Annotations", []);
        assert_eq!(
            text.finish(),
            "\
Name:       web
Namespace:  default
            more
Containers:
  a:
    Image:    x
    Env:      <none>  (odd)
Labels:       a=b
              c=d
Annotations:  <none>
"
        );
    }
}
