//! A list, sent in pieces below any message size limit.

use futures_util::stream;
use tonic::codegen::BoxStream;

/// Size in bytes at which the next piece is started.
const PIECE: usize = 256 * 1024;

/// The items in order; `message` builds a piece from some of them.
pub(super) fn stream<T, M>(
    items: Vec<T>,
    message: impl Fn(Vec<T>) -> M + Send + 'static,
) -> BoxStream<M>
where
    T: prost::Message + 'static,
    M: Send + 'static,
{
    let mut items = items.into_iter();
    let pieces = std::iter::from_fn(move || {
        let first = items.next()?;
        let mut size = first.encoded_len();
        let mut piece = vec![first];
        while size < PIECE
            && let Some(item) = items.next()
        {
            size += item.encoded_len();
            piece.push(item);
        }
        Some(Ok(message(piece)))
    });
    Box::pin(stream::iter(pieces))
}
