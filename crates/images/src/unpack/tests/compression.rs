//! Compressed layers: both digests, and bombs.

use proptest::prelude::*;

use super::*;

fn compressed(bytes: &[u8], how: &str) -> Vec<u8> {
    use io::Write as _;
    match how {
        "gzip" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::encode_all(bytes, 3).unwrap(),
        _ => bytes.to_vec(),
    }
}

fn unpacked(blob: &[u8], limits: &UnpackLimits) -> Result<UnpackedLayer, UnpackError> {
    let dir = tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap();
    unpack(
        blob,
        (Algorithm::Sha256, Algorithm::Sha256),
        dir.path(),
        limits,
    )
}

#[test]
fn blobs_of_each_compression_have_both_digests() {
    let plain = Layer::new().file("f", &"x".repeat(3000)).bytes();
    for how in ["plain", "gzip", "zstd"] {
        let mut blob = compressed(&plain, how);
        if how == "gzip" {
            // As parallel compressors write it: in members.
            blob = [
                compressed(&plain[..1000], how),
                compressed(&plain[1000..], how),
            ]
            .concat();
        }
        let found = unpacked(&blob, &limits()).unwrap();
        assert_eq!(found.diff_id, Digest::of(&plain), "{how}");
        assert_eq!(found.blob, Digest::of(&blob), "{how}");
        assert_eq!(found.blob_bytes, blob.len() as u64);
        assert_eq!(found.applied.usage.inodes, 1);
        let cut = unpacked(&blob[..blob.len() / 2], &limits()).unwrap_err();
        assert!(
            matches!(cut, UnpackError::Archive(_) | UnpackError::Read(_)),
            "{how}: {cut:?}"
        );
    }
}

#[test]
fn a_bomb_behind_the_end_of_the_archive_is_rejected() {
    let mut plain = Layer::new().file("f", "x").bytes();
    plain.resize(4 << 20, 0);
    let tight = UnpackLimits {
        ratio: 10,
        ratio_from: 1 << 20,
        ..limits()
    };
    for how in ["gzip", "zstd"] {
        let blob = compressed(&plain, how);
        assert!(unpacked(&blob, &limits()).is_ok(), "{how}");
        let error = unpacked(&blob, &tight).unwrap_err();
        assert!(
            matches!(error, UnpackError::LimitExceeded(_)),
            "{how}: {error:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_make_the_decompressors_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), how in 0..3) {
        let start: &[u8] = [&b""[..], &[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd]][how as usize];
        let _ = unpacked(&[start, &bytes].concat(), &limits());
    }
}
