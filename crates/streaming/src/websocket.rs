//! Sessions over a WebSocket: channels, whose number is the first byte of each message, or tunneled
//! SPDY. The subprotocols are Kubernetes' own (KEP-4006).

pub(crate) mod channel;
mod serve;
mod tunnel;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::protocol::{Role, WebSocketConfig},
};

pub(crate) use self::{
    serve::{ports, process},
    tunnel::tunnel,
};

/// Longest message. Clients of Kubernetes send 32 KiB at a time; nothing is buffered between two.
const LONGEST_MESSAGE: usize = 1 << 20;

/// Bytes of one read: the buffer of an idle session.
const READ: usize = 4 << 10;

/// Wraps a connection after its handshake.
async fn accept<I>(io: I) -> WebSocketStream<I>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .write_buffer_size(0)
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}
