//! Splits a log file, read in blocks, into recorded lines, with bounded memory: a recorded line
//! that is longer than [`MAX_HELD`] is returned in several pieces.

/// Maximum number of bytes buffered without a newline.
pub(super) const MAX_HELD: usize = 256 * 1024;

/// A recorded line or a part of one, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The bytes.
    pub(super) bytes: &'a [u8],
    /// Offset of the recorded line that this piece belongs to.
    pub(super) line_at: u64,
    /// The line begins with this piece.
    pub(super) begins: bool,
    /// The line ends with this piece.
    pub(super) ends: bool,
}

/// Buffers the recorded line whose newline has not been read yet.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    held: Vec<u8>,
    line_at: u64,
    /// Bytes of the line at `line_at` that were returned already.
    given: u64,
}

impl Pieces {
    /// For a file that is read from `offset`, where a line begins.
    pub(super) fn starting_at(offset: u64) -> Self {
        Self {
            held: Vec::new(),
            line_at: offset,
            given: 0,
        }
    }

    /// Processes the next block and passes on each piece that is complete.
    pub(super) fn feed(&mut self, mut block: &[u8], mut take: impl FnMut(Piece<'_>)) {
        while let Some(newline) = block.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&block[..newline], &block[newline + 1..]);
            let length = self.given + self.held.len() as u64 + line.len() as u64 + 1;
            let bytes = if self.held.is_empty() {
                line
            } else {
                self.held.extend_from_slice(line);
                &self.held
            };
            take(Piece {
                bytes,
                line_at: self.line_at,
                begins: self.given == 0,
                ends: true,
            });
            self.held.clear();
            self.line_at += length;
            self.given = 0;
            block = rest;
        }
        self.held.extend_from_slice(block);
        if self.held.len() > MAX_HELD {
            self.give(false, &mut take);
        }
        if self.held.is_empty() {
            self.held.shrink_to(0);
        }
    }

    /// The file has ended: a buffered line has no newline.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Piece<'_>)) {
        if !self.held.is_empty() || self.given > 0 {
            self.give(true, &mut take);
        }
    }

    fn give(&mut self, ends: bool, take: &mut impl FnMut(Piece<'_>)) {
        take(Piece {
            bytes: &self.held,
            line_at: self.line_at,
            begins: self.given == 0,
            ends,
        });
        self.given += self.held.len() as u64;
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(blocks: &[&[u8]]) -> Vec<(Vec<u8>, u64, bool, bool)> {
        let mut pieces = Pieces::starting_at(10);
        let mut out = Vec::new();
        let mut take = |p: Piece<'_>| out.push((p.bytes.to_vec(), p.line_at, p.begins, p.ends));
        for block in blocks {
            pieces.feed(block, &mut take);
        }
        pieces.finish(take);
        out
    }

    #[test]
    fn lines_are_the_same_wherever_blocks_end() {
        let lines = vec![
            (b"one".to_vec(), 10, true, true),
            (b"".to_vec(), 14, true, true),
            (b"three".to_vec(), 15, true, true),
            (b"tail".to_vec(), 21, true, true),
        ];
        let text = b"one\n\nthree\ntail";
        for at in 0..text.len() {
            assert_eq!(cut(&[&text[..at], &text[at..]]), lines, "cut at {at}");
        }
        assert_eq!(cut(&[]), []);
        assert_eq!(cut(&[b"x\n"]), [(b"x".to_vec(), 10, true, true)]);
    }

    #[test]
    fn an_endless_line_is_given_out_in_pieces() {
        let block = vec![b'x'; MAX_HELD];
        let out = cut(&[&block, b"y", &block, b"z\nnext\n"]);
        let shape: Vec<_> = out
            .iter()
            .map(|(bytes, at, begins, ends)| (bytes.len(), *at, *begins, *ends))
            .collect();
        let length = 2 * MAX_HELD as u64 + 2;
        assert_eq!(
            shape,
            [
                (MAX_HELD + 1, 10, true, false),
                (MAX_HELD + 1, 10, false, true),
                (4, 10 + length + 1, true, true)
            ]
        );
    }
}
