//! What the other end of a supervisor's socket may send, in portions of any size.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rubelet_shim::protocol::{
    DecodeError, DecodedMessage, Decoder, Frame, FromAgent, encode, from_agent, from_shim,
};

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let whole = decode(std::iter::once(bytes));
    let portions = decode(bytes.chunks(usize::from(*first).max(1)));
    assert_eq!(whole, portions, "portions make no difference");
    for frame in &whole.0 {
        if let Ok(DecodedMessage::Message(message)) = from_agent(&frame.body) {
            assert_eq!(again(&message), message);
        }
        let _ = from_shim(&frame.body);
    }
    // Most nonsense is no frame; its body alone gets further.
    let _ = from_agent(bytes);
    let _ = from_shim(bytes);
});

fn decode<'a>(portions: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<DecodeError>) {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    for portion in portions {
        decoder.push(portion);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// The message after it was sent and received.
fn again(message: &FromAgent) -> FromAgent {
    let bytes = encode(message, 0).expect("what came in a frame fits into one");
    let (frames, error) = decode(std::iter::once(bytes.as_slice()));
    assert_eq!(error, None);
    match from_agent(&frames[0].body) {
        Ok(DecodedMessage::Message(message)) => message,
        other => panic!("{other:?}"),
    }
}
