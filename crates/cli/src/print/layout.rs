//! Aligned columns, also for rows that come later in a watch.

use super::super::terminal::visible;

/// Spaces between two columns.
const GAP: usize = 3;

/// Remembers the widths of the columns.
#[derive(Debug, Default)]
pub(super) struct Layout {
    widths: Vec<usize>,
}

impl Layout {
    /// Formats rows. `color` returns the SGR code of a cell by row, column and text.
    pub(super) fn render(
        &mut self,
        rows: &[Vec<String>],
        color: impl Fn(usize, usize, &str) -> Option<&'static str>,
    ) -> String {
        for row in rows {
            self.widths.resize(self.widths.len().max(row.len()), 0);
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for (row_number, row) in rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                match color(row_number, column, cell) {
                    Some(code) => text.push_str(&format!("\x1b[{code}m{cell}\x1b[0m")),
                    None => text.push_str(cell),
                }
                if column + 1 < row.len() {
                    let blanks = self.widths[column] + GAP - cell.chars().count();
                    text.extend(std::iter::repeat_n(' ', blanks));
                }
            }
            // An empty last cell must not leave trailing spaces.
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

/// The first line of a cell's text, with a mark if there is more.
pub(super) fn one_line(text: &str) -> String {
    let text = text.replace('\t', " ");
    match text.split_once(['\n', '\r']) {
        Some((first, _)) => format!("{}...", visible(first)),
        None => visible(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_never_get_narrower() {
        let mut layout = Layout::default();
        let first = layout.render(&[row(&["NAME", "AGE"]), row(&["webé", ""])], |_, _, _| {
            None
        });
        assert_eq!(first, "NAME   AGE\nwebé\n");
        let wider = layout.render(&[row(&["a-long-name", "5s"])], |_, _, _| None);
        assert_eq!(wider, "a-long-name   5s\n");
        let later = layout.render(&[row(&["web", "6s"])], |_, _, _| None);
        assert_eq!(later, "web           6s\n");
    }

    #[test]
    fn colors_do_not_move_columns() {
        let text = Layout::default()
            .render(&[row(&["ok", "x"]), row(&["bad!", "y"])], |r, c, _| {
                (r == 1 && c == 0).then_some("31")
            });
        assert_eq!(text, "ok     x\n\x1b[31mbad!\x1b[0m   y\n");
    }

    #[test]
    fn a_cell_is_one_harmless_line() {
        assert_eq!(one_line("first\nsecond"), "first...");
        assert_eq!(one_line("\x1b[2Jgone\u{9b}1m"), "^[[2Jgone\\u{9b}1m");
    }
}
