//! Tests of `message`.

use super::*;

#[test]
fn what_is_written_is_read_again() {
    let mut messages = Messages::default();
    messages.begin(16, 5, &[1, 2, 3, 4]).text(3, "eth0");
    messages
        .begin(17, 1, &[])
        .nest(1, |nest| {
            nest.number(2, 7).nest_with(4, &[9; 8], |inner| {
                inner.text(3, "x");
            });
        })
        .attribute(5, &[1]);
    let all: Vec<NetlinkMessage<'_>> = answers(messages.bytes()).collect();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].kind, all[0].flags, all[0].sequence), (16, 5, 0));
    assert_eq!(text(attribute(&all[0].payload[4..], 3).unwrap()), "eth0");
    assert_eq!((all[1].kind, all[1].sequence), (17, 1));
    let nest = attribute(all[1].payload, 1).unwrap();
    assert_eq!(number(attribute(nest, 2).unwrap(), 0), Some(7));
    assert_eq!(
        text(attribute(&attribute(nest, 4).unwrap()[8..], 3).unwrap()),
        "x"
    );
    assert_eq!(attribute(all[1].payload, 5), Some(&[1u8][..]));
}

#[test]
fn messages_are_sent_some_at_a_time() {
    let mut messages = Messages::default();
    for kind in 0..5 {
        messages.begin(kind, 0, &[]).number(1, 7);
    }
    let chunks: Vec<(usize, u32)> = messages
        .chunks(2)
        .map(|(bytes, last)| (answers(bytes).count(), last))
        .collect();
    assert_eq!(chunks, [(2, 1), (2, 3), (1, 4)]);
    assert_eq!(Messages::default().chunks(2).count(), 0);
}

#[test]
fn cut_answers_end_the_list() {
    let mut messages = Messages::default();
    messages.begin(16, 0, &[]).number(1, 1).number(2, 2);
    for end in 0..messages.bytes().len() {
        assert_eq!(answers(&messages.bytes()[..end]).count(), 0);
        for answer in answers(messages.bytes()) {
            let cut = end.min(answer.payload.len());
            assert!(attributes(&answer.payload[..cut]).count() <= 2);
        }
    }
    assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0);
    assert_eq!(answers(&[0; 64]).count(), 0);
}
