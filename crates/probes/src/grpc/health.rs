//! The messages of grpc.health.v1, the health checking protocol of gRPC.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

/// The method that is called.
pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";

/// The status of a healthy service.
pub(super) const SERVING: i32 = 1;

/// Length of the prefix of each message: a flag and the message's size.
const PREFIX: usize = 5;

#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// The request for one service, as the payload of DATA frames.
pub(super) fn request(service: &str) -> Bytes {
    let message = HealthCheckRequest {
        service: service.to_owned(),
    };
    let size = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + size);
    out.put_u8(0);
    out.put_u32(u32::try_from(size).unwrap_or(u32::MAX));
    out.put(message.encode_to_vec().as_slice());
    out.freeze()
}

/// An invalid message, with grpc-go's error messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageError {
    /// It is truncated.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// It is compressed, and the probe accepts no compression.
    #[error("grpc: compressed flag set with identity or empty encoding")]
    Compressed,
    /// It is not a `HealthCheckResponse`.
    #[error("grpc: failed to unmarshal the received message: {0}")]
    Unmarshal(prost::DecodeError),
}

/// The status in a response, from its DATA frames; `None` if there is no message.
///
/// # Errors
/// See [`MessageError`].
pub(super) fn response(mut data: &[u8]) -> Result<Option<i32>, MessageError> {
    if data.is_empty() {
        return Ok(None);
    }
    if data.len() < PREFIX {
        return Err(MessageError::UnexpectedEof);
    }
    if data.get_u8() != 0 {
        return Err(MessageError::Compressed);
    }
    let size = data.get_u32() as usize;
    let message = data.get(..size).ok_or(MessageError::UnexpectedEof)?;
    HealthCheckResponse::decode(message)
        .map(|response| Some(response.status))
        .map_err(MessageError::Unmarshal)
}

/// The name of a status, or its number.
pub(super) fn status_name(status: i32) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        SERVING => "SERVING".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_protocol() {
        assert_eq!(&request("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&request("ab")[..], [0, 0, 0, 0, 4, 10, 2, b'a', b'b']);
        for (data, status) in [
            (&[][..], Ok(None)),
            (&[0, 0, 0, 0, 0], Ok(Some(0))),
            (&[0, 0, 0, 0, 2, 8, 1], Ok(Some(1))),
            (&[0, 0, 0, 0, 2, 8, 2, 99], Ok(Some(2))),
        ] {
            assert_eq!(response(data), status);
        }
        for data in [
            &[0, 0][..],
            &[1, 0, 0, 0, 0],
            &[0, 0, 0, 0, 9, 8],
            &[0, 0, 0, 0, 1, 15],
        ] {
            assert!(response(data).is_err(), "{data:?}");
        }
    }
}
