//! The lines of a stream that arrives in pieces.

use bytes::Bytes;

/// Cuts a stream into lines. Holds one piece and the beginning of one line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The rest of the last piece, not scanned yet.
    piece: Bytes,
    /// The beginning of a line that earlier pieces brought.
    begun: Vec<u8>,
}

/// A line is longer than any object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// A buffer that grew beyond this for one large object is given back.
const KEPT: usize = 4 * 1024;

impl Lines {
    /// Takes the next piece. All lines of the one before must have been taken out.
    pub(super) fn feed(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "a piece would be lost");
        self.piece = piece;
    }

    /// Hands the next complete line to `read`, without its line feed; blank ones are passed over.
    pub(super) fn next<R>(
        &mut self,
        limit: usize,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TooLong> {
        loop {
            let Some(end) = self.piece.iter().position(|byte| *byte == b'\n') else {
                if self.begun.len() + self.piece.len() > limit {
                    return Err(TooLong);
                }
                self.begun.extend_from_slice(&self.piece);
                self.piece = Bytes::new();
                return Ok(None);
            };
            let line = self.piece.split_to(end + 1);
            let line = &line[..end];
            if self.begun.len() + line.len() > limit {
                return Err(TooLong);
            }
            if self.begun.is_empty() {
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(read(line)));
                }
            } else {
                self.begun.extend_from_slice(line);
                let result = read(&self.begun);
                self.begun.clear();
                self.begun.shrink_to(KEPT);
                return Ok(Some(result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], limit: usize) -> Result<Vec<String>, TooLong> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.feed(Bytes::copy_from_slice(piece.as_bytes()));
            while let Some(line) =
                lines.next(limit, |line| String::from_utf8_lossy(line).into_owned())?
            {
                found.push(line);
            }
        }
        Ok(found)
    }

    #[test]
    fn lines_are_the_same_however_the_stream_is_cut() {
        let text = "one\n\ntwo\r\nthree\n";
        for cut in 0..text.len() {
            let (a, b) = text.split_at(cut);
            let found = lines(&[a, b], 100).unwrap();
            let found: Vec<&str> = found.iter().map(|line| line.trim()).collect();
            let found: Vec<&str> = found.into_iter().filter(|line| !line.is_empty()).collect();
            assert_eq!(found, ["one", "two", "three"], "{cut}");
        }
        assert_eq!(lines(&["no end"], 100), Ok(vec![]));
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_before_it_is_kept() {
        assert_eq!(lines(&["abc", "def\n"], 5), Err(TooLong));
        assert_eq!(lines(&["abcdef"], 5), Err(TooLong));
        assert_eq!(lines(&["abcdef\n"], 5), Err(TooLong));
        assert_eq!(lines(&["abcde\n"], 5), Ok(vec!["abcde".to_owned()]));
    }
}
