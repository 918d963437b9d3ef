//! Records under every kind of damage, and under crashes and full disks.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Damage, Loaded, Migration, Record, SaveError, Saved, Stored, wait_for_flush};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counts {
    name: String,
    restarts: u32,
}

impl Stored for Counts {
    const KIND: &'static str = "counts";
    const MIGRATIONS: &'static [Migration] = &[
        // Version 1 was a bare number.
        |value| Ok(json!({ "restarts": value })),
        // Version 2 had no name.
        |mut value| {
            let object = value.as_object_mut().ok_or("it is no object")?;
            object.insert("name".into(), Value::from("unnamed"));
            Ok(value)
        },
    ];
}

fn value() -> Counts {
    Counts {
        name: "web é".into(),
        restarts: 7,
    }
}

struct StoreDirectory(tempfile::TempDir);

impl StoreDirectory {
    fn new() -> Self {
        Self(
            tempfile::Builder::new()
                .prefix("rbt-store-")
                .tempdir()
                .unwrap(),
        )
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("counts")
    }

    fn record(&self) -> Record<Counts> {
        Record::at(self.file())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn damage(&self, bytes: &[u8]) -> Damage {
        fs::write(self.file(), bytes).unwrap();
        match self.record().load().unwrap() {
            Loaded::Quarantined { moved_to, why } => {
                assert_eq!(fs::read(moved_to).unwrap(), bytes);
                assert!(!self.file().exists());
                why
            }
            other => panic!("{other:?} from {}", String::from_utf8_lossy(bytes)),
        }
    }
}

#[test]
fn a_record_is_found_again_until_it_is_removed() {
    let place = StoreDirectory::new();
    assert_eq!(place.record().load().unwrap(), Loaded::Missing);
    assert_eq!(place.record().save(&value()).unwrap(), Saved::Written);
    assert_eq!(place.record().load().unwrap(), Loaded::Valid(value()));
    assert_eq!(place.names(), ["counts"]);
    for _ in 0..2 {
        place.record().remove().unwrap();
        assert_eq!(place.record().load().unwrap(), Loaded::Missing);
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn an_unchanged_value_is_not_written_again() {
    use std::os::unix::fs::MetadataExt;
    let place = StoreDirectory::new();
    let inode = || fs::metadata(place.file()).unwrap().ino();
    place.record().save(&value()).unwrap();
    let before = inode();
    assert_eq!(place.record().save(&value()).unwrap(), Saved::Unchanged);
    assert_eq!(inode(), before);
    let changed = Counts {
        restarts: 8,
        ..value()
    };
    assert_eq!(place.record().save(&changed).unwrap(), Saved::Written);
    assert_eq!(place.record().load().unwrap(), Loaded::Valid(changed));
}

#[test]
fn the_file_keeps_its_form_across_releases() {
    let place = StoreDirectory::new();
    place.record().save(&value()).unwrap();
    let text = fs::read_to_string(place.file()).unwrap();
    let expected =
        "rubelet-record counts 3 c6362871e20942a5\n{\"name\":\"web é\",\"restarts\":7}\n";
    assert_eq!(text, expected);
}

#[test]
fn a_record_cut_at_any_byte_is_moved_aside() {
    let place = StoreDirectory::new();
    place.record().save(&value()).unwrap();
    let whole = fs::read(place.file()).unwrap();
    for length in 0..whole.len() {
        place.damage(&whole[..length]);
    }
    assert_eq!(
        place.names().len(),
        whole.len(),
        "each got a name of its own"
    );
}

proptest! {
    #[test]
    fn a_record_with_flipped_bits_is_moved_aside(
        flips in prop::collection::btree_set((0usize..200, 0u8..8), 1..20),
    ) {
        let place = StoreDirectory::new();
        place.record().save(&value()).unwrap();
        let mut bytes = fs::read(place.file()).unwrap();
        let whole = bytes.clone();
        for (position, bit) in flips {
            let position = position % bytes.len();
            bytes[position] ^= 1 << bit;
        }
        prop_assume!(bytes != whole);
        place.damage(&bytes);
    }

    #[test]
    fn no_content_makes_loading_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let place = StoreDirectory::new();
        place.damage(&bytes);
    }

    #[test]
    fn every_value_survives(name in ".*", restarts in any::<u32>()) {
        let place = StoreDirectory::new();
        let value = Counts { name, restarts };
        place.record().save(&value).unwrap();
        prop_assert_eq!(place.record().load().unwrap(), Loaded::Valid(value));
    }
}

/// A record as another release or another part of the agent would have written it.
fn written<T: Stored>(value: &T) -> Vec<u8> {
    let place = StoreDirectory::new();
    Record::at(place.file()).save(value).unwrap();
    fs::read(place.file()).unwrap()
}

macro_rules! release {
    ($name:ident, $kind:literal, $migrations:expr) => {
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        struct $name(Value);
        impl Stored for $name {
            const KIND: &'static str = $kind;
            const MIGRATIONS: &'static [Migration] = $migrations;
        }
    };
}

release!(First, "counts", &[]);
release!(Second, "counts", &[Ok]);
release!(Third, "counts", &[Ok, Ok]);
release!(Fifth, "counts", &[Ok, Ok, Ok, Ok]);
release!(Other, "pods", &[Ok, Ok]);

#[test]
fn older_versions_are_migrated_step_by_step() {
    let place = StoreDirectory::new();
    let unnamed = Counts {
        name: "unnamed".into(),
        restarts: 4,
    };
    for bytes in [
        written(&First(json!(4))),
        written(&Second(json!({ "restarts": 4 }))),
    ] {
        fs::write(place.file(), bytes).unwrap();
        assert_eq!(
            place.record().load().unwrap(),
            Loaded::Valid(unnamed.clone())
        );
    }
}

#[test]
fn unusable_records_have_different_errors() {
    let place = StoreDirectory::new();
    for (bytes, why) in [
        (
            written(&Fifth(json!({}))),
            "record version 5 is newer than this release, which reads up to 3",
        ),
        (
            written(&Other(json!({}))),
            "record of kind `pods`, expected `counts`",
        ),
        (
            written(&Second(json!([]))),
            "cannot migrate from version 2: it is no object",
        ),
        (written(&Third(json!({ "name": 1 }))), "invalid value: "),
        (b"{}".to_vec(), "malformed record: no second line"),
        (vec![0xff, 0xfe], "malformed record: not UTF-8 text"),
    ] {
        let text = place.damage(&bytes).to_string();
        assert!(text.starts_with(why), "{text}");
    }
    assert!(
        place.names().contains(&"counts.corrupt-6".into()),
        "{:?}",
        place.names()
    );
}

#[test]
fn a_crash_before_the_rename_leaves_the_old_value() {
    let place = StoreDirectory::new();
    place.record().save(&value()).unwrap();
    let changed = Counts {
        restarts: 8,
        ..value()
    };
    let whole = written(&changed);
    for length in [0, 1, whole.len() / 2, whole.len()] {
        fs::write(place.0.path().join(".counts.tmp"), &whole[..length]).unwrap();
        assert_eq!(place.record().load().unwrap(), Loaded::Valid(value()));
    }
    place.record().save(&changed).unwrap();
    assert_eq!(place.record().load().unwrap(), Loaded::Valid(changed));
    wait_for_flush();
    assert_eq!(place.names(), ["counts"]);

    for name in [".counts.tmp", ".counts.kept"] {
        fs::write(place.0.path().join(name), "x").unwrap();
    }
    place.record().remove().unwrap();
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_power_cut_before_the_flush_leaves_the_value_before() {
    let place = StoreDirectory::new();
    let kept = place.0.path().join(".counts.kept");
    let (old, new) = (
        written(&value()),
        Counts {
            restarts: 8,
            ..value()
        },
    );
    // The name is on the disk, and nothing or a part of what it names.
    for length in [0, 10] {
        fs::write(&kept, &old).unwrap();
        fs::write(place.file(), &written(&new)[..length]).unwrap();
        assert_eq!(place.record().load().unwrap(), Loaded::Valid(value()));
        assert_eq!(place.names(), ["counts"]);
    }
    // The process died, and the kernel had flushed the file, or does so now.
    fs::write(&kept, &old).unwrap();
    fs::write(place.file(), written(&new)).unwrap();
    assert_eq!(place.record().load().unwrap(), Loaded::Valid(new));
    wait_for_flush();
    assert_eq!(place.names(), ["counts"]);
    // Both are damaged.
    fs::write(&kept, &old[..10]).unwrap();
    place.damage(&old[..20]);
}

#[test]
fn what_was_synced_is_what_the_next_save_keeps() {
    let place = StoreDirectory::new();
    let record = place.record();
    let counted = |restarts| Counts {
        restarts,
        ..value()
    };
    record.save(&counted(1)).unwrap();
    record.save(&counted(2)).unwrap();
    record.save_synced(&counted(3)).unwrap();
    let synced = fs::read(place.file()).unwrap();
    record.save(&counted(4)).unwrap();
    // Unless it is flushed already.
    if let Ok(kept) = fs::read(place.0.path().join(".counts.kept")) {
        assert_eq!(kept, synced);
    }
}

#[test]
fn a_missing_directory_is_an_error_of_saving_only() {
    let place = StoreDirectory::new();
    let record: Record<Counts> = Record::at(place.0.path().join("missing/counts"));
    assert_eq!(record.load().unwrap(), Loaded::Missing);
    record.remove().unwrap();
    let error = record.save(&value()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot write the record "),
        "{error}"
    );
}

#[test]
fn a_directory_instead_of_a_record_is_a_disk_error() {
    let place = StoreDirectory::new();
    fs::create_dir(place.file()).unwrap();
    assert!(place.record().load().is_err());
    assert!(place.record().save(&value()).is_err());
    assert!(place.record().remove().is_err());
    assert_eq!(place.names(), ["counts"], "nothing is left of the attempt");
}

/// A tmpfs of one page, unmounted when the test ends.
struct TinyDisk(StoreDirectory);

impl TinyDisk {
    fn new() -> Option<Self> {
        let place = StoreDirectory::new();
        if !rubelet_needs::root() {
            return None;
        }
        let flags = rustix::mount::MountFlags::empty();
        let options = c"size=8k";
        rustix::mount::mount("tmpfs", place.0.path(), "tmpfs", flags, options).unwrap();
        Some(Self(place))
    }

    fn dir(&self) -> &Path {
        self.0.0.path()
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.dir(), rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_leaves_the_old_value() {
    let Some(disk) = TinyDisk::new() else { return };
    disk.0.record().save(&value()).unwrap();
    let large = Counts {
        name: "x".repeat(10_000),
        restarts: 0,
    };
    let error = disk.0.record().save(&large).unwrap_err();
    let SaveError::Disk {
        step: "write",
        source,
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(disk.0.names(), ["counts"]);
    assert_eq!(disk.0.record().load().unwrap(), Loaded::Valid(value()));
}
