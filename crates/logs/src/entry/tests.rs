//! Tests of `entry`.

use super::*;

#[test]
fn reads_the_lines_runtimes_write() {
    for (line, stream, partial, content) in [
        (
            "2016-10-06T00:17:09.669794202Z stdout P log content 1",
            "stdout",
            true,
            "log content 1",
        ),
        (
            "2016-10-06T00:17:09.669794203Z stderr F log content 2",
            "stderr",
            false,
            "log content 2",
        ),
        ("2016-10-06T00:17:09Z stdout F ", "stdout", false, ""),
        ("2016-10-06T00:17:09Z stdout F", "stdout", false, ""),
        (
            "2016-10-06T02:17:09.5+02:00 stdout P:later:tags  two",
            "stdout",
            true,
            " two",
        ),
        (
            "2016-10-06T00:17:09Z stdout X later",
            "stdout",
            false,
            "later",
        ),
    ] {
        let header = parse_header(line.as_bytes()).expect(line);
        assert_eq!(header.stream.as_str(), stream, "{line}");
        assert_eq!(header.partial, partial, "{line}");
        assert_eq!(&line[header.content_at..], content, "{line}");
    }
}

#[test]
fn the_offset_of_the_recorded_time_counts() {
    let header = parse_header(b"2016-10-06T02:17:09.5+02:00 stdout F x").expect("a header");
    assert_eq!(
        header.time,
        "2016-10-06T00:17:09.5Z"
            .parse::<Timestamp>()
            .expect("a time")
    );
}

#[test]
fn other_lines_are_not_of_the_format() {
    for line in [
        "",
        "panic: something",
        "2016-10-06T00:17:09Z",
        "2016-10-06T00:17:09Z stdout",
        "2016-10-06T00:17:09Z stdin F x",
        "yesterday stdout F x",
        "2016-10-06T00:17:09Z stdout  x",
        r#"{"log":"x\n","stream":"stdout","time":"2016-10-06T00:17:09Z"}"#,
    ] {
        assert_eq!(parse_header(line.as_bytes()), None, "{line}");
    }
    let endless = format!("2016-10-06T00:17:09Z stdout {}", "F".repeat(200));
    assert_eq!(parse_header(endless.as_bytes()), None);
}

#[test]
fn shown_timestamps_have_nine_digits_and_keep_their_offset() {
    for (recorded, shown) in [
        (
            "2016-10-06T00:17:09.669794202Z",
            "2016-10-06T00:17:09.669794202Z",
        ),
        ("2016-10-06T00:17:09.66Z", "2016-10-06T00:17:09.660000000Z"),
        ("2016-10-06T00:17:09Z", "2016-10-06T00:17:09.000000000Z"),
        (
            "2016-10-06T00:17:09.5+02:00",
            "2016-10-06T00:17:09.500000000+02:00",
        ),
        (
            "2016-10-06T00:17:09-07:00",
            "2016-10-06T00:17:09.000000000-07:00",
        ),
        (
            "2024-06-01T10:11:12.123456789+00:00",
            "2024-06-01T10:11:12.123456789Z",
        ),
    ] {
        let mut out = Vec::new();
        push_fixed_width(recorded, &mut out);
        assert_eq!(str::from_utf8(&out), Ok(shown));
    }
}
