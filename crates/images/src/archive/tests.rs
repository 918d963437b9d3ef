//! Archives as other tools write them, and damaged ones.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// All entries with their content.
fn read(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, ArchiveError> {
    let mut archive = Archive::new(bytes);
    let mut entries = Vec::new();
    while let Some(entry) = archive.next_entry()? {
        let mut content = Vec::new();
        let mut buffer = [0; 100];
        loop {
            match archive.read(&mut buffer)? {
                0 => break,
                read => content.extend_from_slice(&buffer[..read]),
            }
        }
        entries.push((entry, content));
    }
    Ok(entries)
}

fn header(kind: tar::EntryType, path: &str, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_path(path).unwrap();
    header.set_size(size);
    header.set_mode(0o4755);
    header.set_uid(12);
    header.set_gid(34);
    header.set_mtime(56);
    header.set_cksum();
    header
}

fn sample() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    builder
        .append(&header(tar::EntryType::Directory, "a/", 0), &[][..])
        .unwrap();
    builder
        .append(
            &header(tar::EntryType::Regular, "a/file", 700),
            &[7; 700][..],
        )
        .unwrap();
    let long = format!("a/{}", "n".repeat(300));
    let mut link = header(tar::EntryType::Symlink, "x", 0);
    builder
        .append_link(&mut link, &long, "t".repeat(200))
        .unwrap();
    let xattr = b"SCHILY.xattr.user.x";
    let value = b"\0\n=";
    let length = 2 + 1 + xattr.len() + 1 + value.len() + 1;
    let mut record = format!("{length} ").into_bytes();
    record.extend_from_slice(xattr);
    record.push(b'=');
    record.extend_from_slice(value);
    record.push(b'\n');
    record.extend_from_slice(b"16 mtime=-12.25\n");
    record.extend_from_slice(b"18 uid=4294967290\n");
    let mut pax = tar::Header::new_ustar();
    pax.set_entry_type(tar::EntryType::XHeader);
    pax.set_size(record.len() as u64);
    pax.set_cksum();
    builder.append(&pax, record.as_slice()).unwrap();
    builder
        .append(&header(tar::EntryType::Regular, "last", 3), &b"end"[..])
        .unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn entries_are_read_with_all_that_belongs_to_them() {
    let entries = read(&sample()).unwrap();
    let kinds: Vec<_> = entries.iter().map(|(entry, _)| entry.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Directory, Kind::File, Kind::Symlink, Kind::File]
    );
    let (file, content) = &entries[1];
    assert_eq!((file.path.as_slice(), content.len()), (&b"a/file"[..], 700));
    assert_eq!(
        (file.mode, file.uid, file.gid, file.mtime),
        (0o4755, 12, 34, (56, 0))
    );
    let (link, _) = &entries[2];
    assert_eq!((link.path.len(), link.link.len()), (302, 200));
    let (last, content) = &entries[3];
    assert_eq!(last.xattrs, [(b"user.x".to_vec(), b"\0\n=".to_vec())]);
    assert_eq!((last.mtime, last.uid), ((-13, 750_000_000), 4_294_967_290));
    assert_eq!(content, b"end");
}

/// The archive that this machine's `tar` makes of a directory.
fn system_tar(dir: &std::path::Path, options: &[&str]) -> Vec<u8> {
    let output = Command::new("tar")
        .args(options)
        .args(["-cf", "-", "-C"])
        .arg(dir)
        .arg(".")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn each_form_that_gnu_tar_writes_is_read() {
    let dir = tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap();
    let deep = dir.path().join("d".repeat(90)).join("e".repeat(90));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("file"), "content").unwrap();
    std::os::unix::fs::symlink("f".repeat(150), dir.path().join("link")).unwrap();
    for format in ["v7", "oldgnu", "gnu", "ustar", "posix"] {
        if format == "v7" || format == "ustar" {
            let _ = std::fs::remove_file(dir.path().join("link"));
        }
        if format == "v7" {
            std::fs::rename(&deep, dir.path().join("e")).unwrap();
        }
        let option = format!("--format={format}");
        let entries = read(&system_tar(dir.path(), &[&option])).unwrap();
        let file = entries
            .iter()
            .find(|(entry, _)| entry.path.ends_with(b"/file"));
        assert_eq!(file.unwrap().1, b"content", "{format}");
        if format == "v7" {
            std::fs::rename(dir.path().join("e"), &deep).unwrap();
            std::os::unix::fs::symlink("f".repeat(150), dir.path().join("link")).unwrap();
        }
    }
}

#[test]
fn sparse_files_keep_their_holes() {
    use std::os::unix::fs::FileExt as _;
    let dir = tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap();
    let file = std::fs::File::create(dir.path().join("sparse")).unwrap();
    file.set_len(8 << 20).unwrap();
    for part in 0..12u64 {
        file.write_all_at(b"data", part << 19).unwrap();
    }
    drop(file);
    let plain = std::fs::read(dir.path().join("sparse")).unwrap();
    for options in [
        &["--format=gnu", "--sparse"][..],
        &["--format=posix", "--sparse", "--sparse-version=1.0"],
        &["--format=posix", "--sparse", "--sparse-version=0.1"],
    ] {
        let entries = read(&system_tar(dir.path(), options)).unwrap();
        let (entry, content) = entries.iter().find(|(e, _)| e.path == b"./sparse").unwrap();
        let segments = entry.segments.as_ref().expect("tar found holes");
        let mut made = vec![0; usize::try_from(entry.size).unwrap()];
        let mut at = 0;
        for segment in segments {
            let (offset, length) = (segment.offset as usize, segment.length as usize);
            made[offset..offset + length].copy_from_slice(&content[at..at + length]);
            at += length;
        }
        assert!(made == plain, "{options:?}");
        assert!(content.len() < 1 << 20, "{options:?}");
    }
    let oldest = ["--format=posix", "--sparse", "--sparse-version=0.0"];
    assert!(read(&system_tar(dir.path(), &oldest)).is_err());
}

#[test]
fn a_large_extended_header_is_refused_before_it_is_read() {
    for kind in [
        tar::EntryType::XHeader,
        tar::EntryType::GNULongName,
        tar::EntryType::XGlobalHeader,
    ] {
        let mut bytes = header(kind, "x", 1 << 40).as_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4096]);
        assert!(
            matches!(read(&bytes), Err(ArchiveError::Special(_))),
            "{kind:?}"
        );
    }
}

#[test]
fn an_invalid_archive_is_refused() {
    let sample = sample();
    let cut = read(&sample[..1100]);
    assert!(matches!(cut, Err(ArchiveError::Truncated)), "{cut:?}");
    assert!(matches!(read(&[1; 600]), Err(ArchiveError::Malformed(_))));
    let mut flipped = sample.clone();
    flipped[3] ^= 1;
    assert!(matches!(read(&flipped), Err(ArchiveError::Malformed(_))));
    let unknown = header(tar::EntryType::new(b'M'), "x", 0);
    assert!(matches!(
        read(unknown.as_bytes()),
        Err(ArchiveError::Type('M'))
    ));
    // Without end marks, as some writers leave it.
    let whole = header(tar::EntryType::Directory, "x", 0);
    assert_eq!(read(whole.as_bytes()).unwrap().len(), 1);
    assert!(read(b"").unwrap().is_empty());
}

#[test]
fn numbers_are_read_in_both_forms() {
    for (field, value) in [
        (&b"0000644\0"[..], Some(0o644)),
        (b"   644 \0", Some(0o644)),
        (b"\0\0\0\0\0\0\0\0", Some(0)),
        (b"\x80\0\0\0\0\0\x01\0", Some(256)),
        (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
        (b"0000648\0", None),
        (b"-1\0\0\0\0\0\0", None),
        (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
    ] {
        assert_eq!(header::number(field, "").ok(), value, "{field:?}");
    }
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(
        flips in prop::collection::vec((0usize..8192, any::<u8>()), 0..8),
        length in 0usize..8192,
    ) {
        let mut bytes = sample();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(length);
        let _ = read(&bytes);
    }

    #[test]
    fn no_extended_header_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = PaxHeader::parse(&bytes);
    }
}
