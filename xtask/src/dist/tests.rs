//! Tests of `dist`.

use super::*;

#[test]
fn options_are_parsed_and_mistakes_reported() {
    let options = Options::parse(&["--key", "k", "--out", "o"]).unwrap();
    assert_eq!(options.key.as_deref(), Some(Path::new("k")));
    assert_eq!(options.out.as_deref(), Some(Path::new("o")));
    for (words, reason) in [
        (&["--key"][..], "--key needs a path"),
        (&["--out", "a", "--out", "b"], "--out is given twice"),
        (&["--sign"], "unknown option `--sign`"),
    ] {
        let error = Options::parse(words).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn signed_releases_are_checked_for_known_vulnerabilities() {
    let skipped = Advisories::Skipped("no network".to_owned());
    let accept = |words: &[&str], advisories: &Advisories| {
        let accepted = Options::parse(words).unwrap().accept(advisories);
        accepted.map_err(|error| error.to_string())
    };
    let warning = "NOT checked for known vulnerabilities of dependencies: no network";
    for words in [&[][..], &["--key", "k", "--unchecked-advisories"]] {
        assert_eq!(accept(words, &Advisories::Checked), Ok(None));
        assert_eq!(accept(words, &skipped), Ok(Some(warning.to_owned())));
    }
    assert_eq!(accept(&["--key", "k"], &Advisories::Checked), Ok(None));
    let refused = accept(&["--key", "k"], &skipped).unwrap_err();
    assert!(refused.contains("give --unchecked-advisories"), "{refused}");
}

#[test]
fn an_unsigned_release_leaves_no_signature_of_an_earlier_one() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("a/b");
    let file = |name: &str| (name.to_owned(), name.as_bytes().to_vec());
    write(&out, &[file("SHA256SUMS"), file("SHA256SUMS.sig")]).unwrap();
    write(&out, &[file("SHA256SUMS")]).unwrap();
    let names: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["SHA256SUMS"]);
}
