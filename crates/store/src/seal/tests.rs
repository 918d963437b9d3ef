//! Encrypted records under every kind of change.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

use super::*;
use crate::{Loaded, Migration, Record, Saved};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Note {
    text: String,
}

impl Stored for Note {
    const KIND: &'static str = "note";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// The same form, but another kind.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Other {
    text: String,
}

impl Stored for Other {
    const KIND: &'static str = "other";
    const MIGRATIONS: &'static [Migration] = &[];
}

fn with(byte: u8, bound_to: &str) -> Seal {
    Seal {
        key: Arc::new(SealKey::new(&[byte; SealKey::LEN]).unwrap()),
        bound_to: bound_to.to_owned(),
    }
}

fn note() -> Note {
    Note {
        text: "hush-hush".into(),
    }
}

fn why<T: Stored + fmt::Debug>(path: &Path, seal: Seal) -> Damage {
    match Record::<T>::at(path).sealed(seal).load().unwrap() {
        Loaded::Quarantined { moved_to, why } => {
            fs::rename(moved_to, path).unwrap();
            why
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sealed_record_opens_with_its_key_at_its_path_only() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("note");
    let record = Record::at(&path).sealed(with(1, "node/a"));
    assert_eq!(record.save(&note()).unwrap(), Saved::Written);
    assert_eq!(record.load().unwrap(), Loaded::Valid(note()));
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hush"), "{text}");

    assert_eq!(why::<Note>(&path, with(2, "node/a")), Damage::OtherKey);
    assert_eq!(why::<Note>(&path, with(1, "node/b")), Damage::NotAuthentic);
    let kind = Damage::Kind {
        found: "note".into(),
        expected: "other",
    };
    assert_eq!(why::<Other>(&path, with(1, "node/a")), kind);
    // Without a key it is no record at all.
    let plain = Record::<Note>::at(&path).load().unwrap();
    assert!(matches!(plain, Loaded::Quarantined { .. }), "{plain:?}");
    // And a plain record is rejected where a key is set.
    fs::write(&path, envelope::seal(&note()).unwrap()).unwrap();
    assert_eq!(why::<Note>(&path, with(1, "node/a")), Damage::NotEncrypted);
}

#[test]
fn no_byte_can_be_changed_and_no_byte_can_be_cut() {
    let seal = with(1, "a");
    let whole = super::seal(&note(), &seal, None).unwrap().unwrap();
    assert_eq!(open::<Note>(&whole, &seal).unwrap(), note());
    for at in 0..whole.len() {
        open::<Note>(&whole[..at], &seal).unwrap_err();
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let opened = open::<Note>(&changed, &seal);
            assert!(opened.is_err(), "byte {at}, bit {bit}: {opened:?}");
        }
    }
    let text = String::from_utf8(whole).unwrap();
    let other = text.replacen(" 1 ", " 2 ", 1);
    assert_eq!(
        open::<Note>(other.as_bytes(), &seal),
        Err(Damage::NotAuthentic)
    );
}

#[test]
fn an_equal_value_is_not_written_again_and_each_writing_has_a_nonce_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("note");
    let record = Record::at(&path).sealed(with(1, "a"));
    record.save(&note()).unwrap();
    let first = fs::read(&path).unwrap();
    assert_eq!(record.save(&note()).unwrap(), Saved::Unchanged);
    assert_eq!(fs::read(&path).unwrap(), first);
    let again = seal(&note(), &with(1, "a"), None).unwrap().unwrap();
    assert_ne!(again, first);
    // What is encrypted for something else is replaced.
    let moved = Record::at(&path).sealed(with(1, "b"));
    assert_eq!(moved.save(&note()).unwrap(), Saved::Written);
    assert_eq!(moved.load().unwrap(), Loaded::Valid(note()));
    let other = Note { text: "new".into() };
    assert_eq!(moved.save(&other).unwrap(), Saved::Written);
    assert_eq!(moved.load().unwrap(), Loaded::Valid(other));
}
