//! What a client of exec, attach or port-forward may send as SPDY: frames, header blocks with their
//! compression, and the last status of a session.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rubelet_streaming::{
    SessionExit,
    spdy::{
        frame::{self, Control, HEAD, Head},
        header_block::{Deflater, Headers, Inflater, LONGEST_BLOCK},
    },
};

fuzz_target!(|data: &[u8]| {
    let mut inflater = Inflater::default();
    let mut rest = data;
    while let Some((head, body)) = rest.split_first_chunk::<HEAD>() {
        let Ok(head) = frame::head(*head) else {
            break;
        };
        let length = match head {
            Head::Data { length, .. } | Head::Control { length, .. } => length,
        };
        let Some((body, after)) = body.split_at_checked(length) else {
            break;
        };
        rest = after;
        if let Head::Control { kind, flags, .. } = head {
            let control = frame::control(kind, flags, &Bytes::copy_from_slice(body));
            if let Ok(Control::Syn { block, .. } | Control::Reply { block, .. }) = control {
                match inflater.decompress(&block) {
                    Ok(block) => headers(&block),
                    Err(_) => break,
                }
            }
        }
    }
    headers(data);
    if let Ok(block) = Inflater::default().decompress(data) {
        assert!(block.len() <= LONGEST_BLOCK);
        headers(&block);
    }
    let _ = SessionExit::Status(Bytes::copy_from_slice(data)).code();
});

/// What is read is read again after it was written.
fn headers(block: &[u8]) {
    let Ok(headers) = Headers::decode(block) else {
        return;
    };
    let encoded = headers.encode();
    assert_eq!(Headers::decode(&encoded).as_ref(), Ok(&headers));
    let (mut deflater, mut inflater) = (Deflater::default(), Inflater::default());
    for _ in 0..2 {
        let block = inflater.decompress(&deflater.compress(&encoded));
        assert_eq!(block.as_ref(), Ok(&encoded));
    }
}
