//! Splits a YAML text into documents.
//!
//! Source of the rule: YAML 1.2.2, sections 9.1 and 9.2. `---` and `...` at the start of a line,
//! followed by white space or nothing, are markers wherever they stand, block and quoted scalars
//! included; so lines are enough to find them.

use std::ops::Range;

/// The byte range of one document's text, and the number of lines before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) bytes: Range<usize>,
    pub(crate) lines_before: usize,
}

/// Splits `text` at its markers. A segment begins with its `---` line, and with the directives
/// before that; a segment that contains only blanks and comments is skipped.
pub(crate) fn split(text: &str) -> Vec<Segment> {
    let mut splitter = Splitter {
        segments: Vec::new(),
        start: 0,
        first_line: 0,
        seen: DocumentPart::Nothing,
    };
    let mut offset = 0;
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        if is_marker(line, "---") {
            if matches!(splitter.seen, DocumentPart::Content) {
                splitter.cut(offset, offset, lines);
            }
            splitter.seen = DocumentPart::Content;
        } else if is_marker(line, "...") {
            splitter.cut(offset, end, lines + 1);
        } else if !matches!(splitter.seen, DocumentPart::Content) && !is_blank(line) {
            splitter.seen = match line.starts_with('%') {
                true => DocumentPart::Directive,
                false => DocumentPart::Content,
            };
        }
        offset = end;
        lines += 1;
    }
    splitter.cut(offset, offset, lines);
    splitter.segments
}

enum DocumentPart {
    Nothing,
    Directive,
    Content,
}

struct Splitter {
    segments: Vec<Segment>,
    start: usize,
    first_line: usize,
    seen: DocumentPart,
}

impl Splitter {
    fn cut(&mut self, end: usize, next_start: usize, next_line: usize) {
        if !matches!(self.seen, DocumentPart::Nothing) {
            let bytes = self.start..end;
            self.segments.push(Segment {
                bytes,
                lines_before: self.first_line,
            });
        }
        self.start = next_start;
        self.first_line = next_line;
        self.seen = DocumentPart::Nothing;
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_matches([' ', '\t', '\r', '\n', '\u{feff}']);
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn documents_are_cut_at_markers_only() {
        for (text, expected) in [
            ("", vec![]),
            ("\n# only a comment\n", vec![]),
            ("a: 1\n", vec![("a: 1\n", 0)]),
            ("a: 1\n---\nb: 2", vec![("a: 1\n", 0), ("---\nb: 2", 1)]),
            ("# c\n---\na: 1\n", vec![("# c\n---\na: 1\n", 0)]),
            ("---\n---\na: 1\n", vec![("---\n", 0), ("---\na: 1\n", 1)]),
            (
                "%YAML 1.2\n---\na: 1\n",
                vec![("%YAML 1.2\n---\na: 1\n", 0)],
            ),
            (
                "a: 1\n...\n# x\n---\nb: 2\n",
                vec![("a: 1\n", 0), ("# x\n---\nb: 2\n", 2)],
            ),
            (
                "a: |\n  ---\n  x\n--- # c\nb: 2\n",
                vec![("a: |\n  ---\n  x\n", 0), ("--- # c\nb: 2\n", 3)],
            ),
            ("a: 1\n----\n", vec![("a: 1\n----\n", 0)]),
            (
                "a: 1\r\n---\r\nb: 2\r\n",
                vec![("a: 1\r\n", 0), ("---\r\nb: 2\r\n", 1)],
            ),
        ] {
            let found: Vec<(&str, usize)> = split(text)
                .into_iter()
                .map(|segment| (&text[segment.bytes], segment.lines_before))
                .collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
