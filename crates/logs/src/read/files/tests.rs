//! Tests of `files`.

use super::*;

fn content(file: &LogFile) -> String {
    let mut bytes = vec![0; 100];
    let read = file.read_at(0, &mut bytes).unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

fn gzip(path: &Path, text: &str) {
    use std::io::Write as _;
    let file = File::create(path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
}

#[test]
fn a_log_is_its_rotated_files_and_the_current_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    for (name, text) in [
        ("0.log", "now"),
        ("0.log.20240102-000000", "second"),
        ("0.log.20240101-000000", "first"),
        ("0.log.20231231-000000.gz", "packed"),
        ("0.log.20240103-000000.tmp", "half made"),
        ("0.log.bak", "a copy"),
        ("10.log.20240101-000000", "another attempt"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let texts = |which| -> Vec<String> {
        open_all(&path, which)
            .unwrap()
            .iter()
            .map(content)
            .collect()
    };
    assert_eq!(texts(FileSelection::Plain), ["first", "second", "now"]);
    assert_eq!(texts(FileSelection::Current), ["now"]);
    gzip(&dir.path().join("0.log.20231231-000000.gz"), "packed");
    assert_eq!(
        texts(FileSelection::All),
        ["packed", "first", "second", "now"]
    );
    // Of a file that is being compressed, both are complete.
    gzip(&dir.path().join("0.log.20240101-000000.gz"), "first");
    assert_eq!(
        texts(FileSelection::All),
        ["packed", "first", "second", "now"]
    );
}

#[test]
fn the_chain_goes_through_every_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    fs::write(&path, "a").unwrap();
    let a = LogFile::open(&path).unwrap();
    assert!(successor(&path, &a).is_none());
    fs::rename(&path, dir.path().join("0.log.20240101-000000")).unwrap();
    assert!(
        successor(&path, &a).is_none(),
        "the runtime has not made the new file yet"
    );
    fs::write(&path, "b").unwrap();
    fs::rename(&path, dir.path().join("0.log.20240101-000010")).unwrap();
    fs::write(&path, "c").unwrap();
    let b = successor(&path, &a).unwrap();
    assert_eq!(content(&b), "b");
    let c = successor(&path, &b).unwrap();
    assert_eq!(content(&c), "c");
    assert!(successor(&path, &c).is_none());
    // The oldest is removed, and the next one compressed.
    fs::remove_file(dir.path().join("0.log.20240101-000000")).unwrap();
    assert_eq!(content(&successor(&path, &a).unwrap()), "b");
    gzip(&dir.path().join("0.log.20240101-000010.gz"), "b");
    fs::remove_file(dir.path().join("0.log.20240101-000010")).unwrap();
    let b_compressed = successor(&path, &a).unwrap();
    assert!(b_compressed.is_compressed());
    assert_eq!(content(&b_compressed), "b");
    for b in [&b, &b_compressed] {
        assert_eq!(content(&successor(&path, b).unwrap()), "c");
    }
}

#[test]
fn older_files_do_not_follow_on_a_log_that_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    fs::write(dir.path().join("0.log.20240101-000000"), "old").unwrap();
    fs::write(&path, "a").unwrap();
    let a = LogFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(successor(&path, &a).is_none());
    fs::write(&path, "b").unwrap();
    assert_eq!(content(&successor(&path, &a).unwrap()), "b");
}

#[test]
fn of_a_damaged_compressed_file_is_read_what_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    fs::write(&path, "now").unwrap();
    let packed = dir.path().join("0.log.20240101-000000.gz");
    gzip(&packed, &"0123456789\n".repeat(100_000));
    let whole = fs::read(&packed).unwrap();
    fs::write(&packed, &whole[..whole.len() / 2]).unwrap();
    let files = open_all(&path, FileSelection::All).unwrap();
    let (mut read, mut bytes) = (0, vec![0; 64 * 1024]);
    loop {
        let more = files[0].read_at(read, &mut bytes).unwrap();
        read += more as u64;
        if more < bytes.len() {
            break;
        }
    }
    assert!((1..1_100_000).contains(&read), "{read}");
    assert_eq!(files[0].read_at(read, &mut bytes).unwrap(), 0);
    assert!(
        files[0].read_at(0, &mut bytes).is_err(),
        "not from the start again"
    );
}

#[test]
fn links_and_pipes_are_refused_without_being_opened() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("0.log");
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    assert!(matches!(LogFile::open(&link), Err(LogError::NotAFile(_))));
    let pipe = dir.path().join("1.log");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(matches!(LogFile::open(&pipe), Err(LogError::NotAFile(_))));
    let gone = LogFile::open(&dir.path().join("2.log"));
    assert!(matches!(gone, Err(LogError::Open { .. })));
}
