//! What could not be read of the API server's objects: for the log when it is new, and for those who
//! look at the node for as long as it stays so.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use rubelet_yaml::LeftOut;
use tokio::time::Instant;

use crate::clock::WallClock;

/// Objects that are remembered. More of them mean that nothing fits, which the first ones show.
const MAX_OBJECTS: usize = 100;
/// Fields of one object that are remembered.
const MAX_FIELDS: usize = 10;
/// An answer to a request that is not asked for again says nothing any more after this time.
const ANSWER_LASTS: Duration = Duration::from_secs(15 * 60);

/// An object of the API server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    /// The plural, such as `nodes`; with the part behind a slash where it is an object of its own,
    /// such as `serviceaccounts/token`.
    pub resource: Box<str>,
    /// `metadata.namespace`; empty if it is in none.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.resource, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource, self.name),
        }
    }
}

/// An object that can't be read, or not in all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadObject {
    /// Which one.
    pub object: ObjectName,
    /// Fields that are left out, the first ones of many; a field without a path stands for the whole
    /// object.
    pub fields: Vec<LeftOut>,
    /// Since when.
    pub since: Timestamp,
}

/// All such objects. Clones share them.
#[derive(Clone)]
pub struct UnreadObjects(Arc<Inner>);

struct Inner {
    clock: WallClock,
    /// Nothing is to be cleared, which is nearly always so.
    is_empty: AtomicBool,
    entries: Mutex<BTreeMap<(Reader, ObjectName), Entry>>,
}

/// Who read the object: others may look at other fields of it.
pub(crate) type Reader = &'static str;

struct Entry {
    fields: Vec<LeftOut>,
    since: Timestamp,
    /// When it goes by itself; never for what a watch shows.
    until: Option<Instant>,
}

/// How long what was found is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Until the reader says otherwise.
    Watched,
    /// For a while.
    Answer,
}

impl UnreadObjects {
    pub(crate) fn new(clock: WallClock) -> Self {
        Self(Arc::new(Inner {
            clock,
            is_empty: AtomicBool::new(true),
            entries: Mutex::default(),
        }))
    }

    /// All of them, by name.
    #[must_use]
    pub fn list(&self) -> Vec<UnreadObject> {
        let mut found: BTreeMap<ObjectName, UnreadObject> = BTreeMap::new();
        for ((_, object), entry) in self.lock().iter() {
            let one = found.entry(object.clone()).or_insert_with(|| UnreadObject {
                object: object.clone(),
                fields: Vec::new(),
                since: entry.since,
            });
            one.since = one.since.min(entry.since);
            for field in &entry.fields {
                if !one.fields.contains(field) {
                    one.fields.push(field.clone());
                }
            }
        }
        found.into_values().collect()
    }

    /// Notes what a reader that looks at the object whenever it changes can't read of it; nothing, if
    /// it can read all. `reader` tells it apart from others.
    pub fn note(&self, reader: &'static str, object: &ObjectName, fields: Vec<LeftOut>) {
        if fields.is_empty() {
            self.clear(reader, object);
        } else {
            self.put(reader, object, fields, Lasting::Watched);
        }
    }

    /// Notes what can't be read of an object that may go without a word: it is told for a quarter of an
    /// hour.
    pub fn note_for_a_while(
        &self,
        reader: &'static str,
        object: &ObjectName,
        fields: Vec<LeftOut>,
    ) {
        self.put(reader, object, fields, Lasting::Answer);
    }

    /// Whether there is nothing that could be cleared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self, reader: Reader, object: &ObjectName) {
        if !self.is_empty() {
            let mut entries = self.lock();
            entries.remove(&(reader, object.clone()));
            self.0.is_empty.store(entries.is_empty(), Ordering::Relaxed);
        }
    }

    pub(crate) fn put(
        &self,
        reader: Reader,
        object: &ObjectName,
        mut fields: Vec<LeftOut>,
        lasting: Lasting,
    ) {
        fields.truncate(MAX_FIELDS);
        let until = (lasting == Lasting::Answer).then(|| Instant::now() + ANSWER_LASTS);
        let key = (reader, object.clone());
        let mut entries = self.lock();
        let old = entries.get(&key);
        if old.is_none_or(|old| old.fields != fields) {
            for LeftOut { field, problem } in &fields {
                tracing::warn!(%object, field, problem, "Cannot read an object of the API server; what cannot be read counts as absent");
            }
        }
        let since = old.map_or_else(|| (self.0.clock)(), |old| old.since);
        if old.is_some() || entries.len() < MAX_OBJECTS {
            let entry = Entry {
                fields,
                since,
                until,
            };
            entries.insert(key, entry);
            self.0.is_empty.store(false, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Reader, ObjectName), Entry>> {
        let entries = self.0.entries.lock();
        let mut entries = entries.unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        entries.retain(|_, entry| entry.until.is_none_or(|until| now < until));
        entries
    }
}

impl fmt::Debug for UnreadObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// What a path names: the resource, the namespace, and the name if there is one.
pub(crate) fn named_by(path: &str) -> ObjectName {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match parts.next() {
        Some("api") => parts.next(),
        _ => parts.nth(1),
    };
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let resource = rest.first().copied().unwrap_or_default();
    ObjectName {
        resource: match rest.get(2) {
            None | Some(&"status") => resource.into(),
            Some(part) => format!("{resource}/{part}").into(),
        },
        namespace: namespace.into(),
        name: rest.get(1).copied().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;

    fn field(path: &str) -> LeftOut {
        LeftOut {
            field: path.to_owned(),
            problem: "expected a list".to_owned(),
        }
    }

    fn objects() -> (UnreadObjects, Arc<AtomicI64>) {
        let time = Arc::new(AtomicI64::new(100));
        let read = Arc::clone(&time);
        let clock = move || Timestamp::from_second(read.load(Ordering::Relaxed)).unwrap();
        (UnreadObjects::new(Arc::new(clock)), time)
    }

    #[test]
    fn paths_name_objects() {
        for (path, shown) in [
            ("/api/v1/nodes/a", "nodes a"),
            ("/api/v1/nodes/a/status", "nodes a"),
            ("/api/v1/namespaces/b/pods/a/status?x=y", "pods b/a"),
            ("/api/v1/namespaces/b", "namespaces b"),
            (
                "/api/v1/namespaces/b/serviceaccounts/a/token",
                "serviceaccounts/token b/a",
            ),
            (
                "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
                "leases kube-node-lease/n",
            ),
            ("/apis/node.k8s.io/v1/runtimeclasses", "runtimeclasses "),
            ("/", " "),
        ] {
            assert_eq!(named_by(path).to_string(), shown, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_told_until_it_can() {
        let (unread, time) = objects();
        let node = named_by("/api/v1/nodes/a");
        unread.note("x", &node, vec![field("status.images")]);
        time.store(200, Ordering::Relaxed);
        unread.note("x", &node, vec![field("spec.taints")]);
        unread.put("y", &node, vec![field("spec")], Lasting::Answer);
        let shown = unread.list();
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].since.as_second(), 100);
        assert_eq!(shown[0].fields, [field("spec.taints"), field("spec")]);
        tokio::time::advance(ANSWER_LASTS).await;
        assert_eq!(unread.list()[0].fields, [field("spec.taints")]);
        unread.note("x", &node, vec![]);
        assert!(unread.list().is_empty() && unread.is_empty());
    }

    #[test]
    fn no_server_can_fill_the_memory() {
        let (unread, _) = objects();
        for number in 0..1000 {
            let fields = (0..50).map(|one| field(&one.to_string())).collect();
            unread.note("x", &named_by(&format!("/api/v1/nodes/{number}")), fields);
        }
        let shown = unread.list();
        assert_eq!(
            (shown.len(), shown[0].fields.len()),
            (MAX_OBJECTS, MAX_FIELDS)
        );
    }
}
