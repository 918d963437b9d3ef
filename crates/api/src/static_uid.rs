//! UIDs of static pods that an edit of their manifest replaces: each content has a UID of its own, as
//! with the kubelet. They have the form of upstream's, 32 lower-case hex digits: 16 for the pod's name,
//! 12 for the content, 4 that count the pods made of it one after the other.

use rubelet_base::{PodName, PodUid};

use crate::hash;

const NAME: usize = 16;
const CONTENT: usize = 28;
const WHOLE: usize = 32;

/// What a UID says about the pod that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UidOrigin {
    /// A pod of this name and content.
    Same,
    /// A pod of this name and another content.
    OtherContent,
    /// The UID has another form: of another agent, or of one that edits pods in place.
    Unrelated,
}

/// The UIDs of one name and content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticUid(String);

impl StaticUid {
    /// Those of a pod with this full name and `kubernetes.io/config.hash`.
    #[must_use]
    pub fn new(name: &PodName, content: &str) -> Self {
        let mut uid = hash::of_texts(&[&name.namespace, &name.name]);
        uid.truncate(NAME);
        let content = hash::of_texts(&[content]);
        uid.extend(content.chars().take(CONTENT - NAME));
        Self(uid)
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> PodUid {
        self.numbered(0)
    }

    /// One for a pod that comes after the one with the UID `before`; another one than that.
    #[must_use]
    pub fn after(&self, before: &PodUid) -> PodUid {
        let number = match self.origin(before) {
            UidOrigin::Same => before.as_str().get(CONTENT..),
            _ => return self.first(),
        };
        let number = number.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.numbered(number.unwrap_or_default().wrapping_add(1))
    }

    /// What another UID says.
    #[must_use]
    pub fn origin(&self, uid: &PodUid) -> UidOrigin {
        let uid = uid.as_str();
        let digits = uid.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if uid.len() != WHOLE || !digits || uid[..NAME] != self.0[..NAME] {
            UidOrigin::Unrelated
        } else if uid[..CONTENT] == *self.0 {
            UidOrigin::Same
        } else {
            UidOrigin::OtherContent
        }
    }

    fn numbered(&self, number: u16) -> PodUid {
        format!("{}{number:04x}", self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_tells_name_content_and_number() {
        let name = PodName::new("default", "web-n");
        let (one, two) = (StaticUid::new(&name, "one"), StaticUid::new(&name, "two"));
        let first = one.first();
        assert_eq!(first.as_str().len(), WHOLE);
        assert!(crate::parse::is_pod_uid(first.as_str()));
        assert_eq!(one.origin(&first), UidOrigin::Same);
        assert_eq!(two.origin(&first), UidOrigin::OtherContent);
        let (second, third) = (one.after(&first), one.after(&one.after(&first)));
        assert!(first != second && second != third);
        assert_eq!(one.origin(&third), UidOrigin::Same);
        assert_eq!(two.after(&third), two.first(), "of another content");
        let other = StaticUid::new(&PodName::new("other", "web-n"), "one");
        let in_place: PodUid = hash::static_uid("n", "file", "default", "web").into();
        for uid in [&first, &in_place, &"running".into(), &"é".repeat(16).into()] {
            assert_eq!(other.origin(uid), UidOrigin::Unrelated, "{uid}");
        }
        assert_eq!(one.origin(&in_place), UidOrigin::Unrelated);
    }

    #[test]
    fn the_numbers_begin_again_after_the_last() {
        let uids = StaticUid::new(&PodName::new("default", "web-n"), "one");
        let last = uids.numbered(u16::MAX);
        assert_eq!(uids.after(&last), uids.first());
    }
}
