//! Objects that one watch cannot read: reported until they change or the watch ends.

use std::collections::BTreeSet;

use rubelet_yaml::{Received, SkippedField};

use super::{event::Meta, target::WatchTarget};
use crate::unreadable::{ObjectName, Reader, Retention, UnreadableObjects, object_of_path};

/// Notes what one watch can't read.
pub(super) struct WatchUnreadable {
    objects: UnreadableObjects,
    reader: Reader,
    /// The collection: an object without a name.
    collection: ObjectName,
    /// Objects that were noted.
    noted: BTreeSet<ObjectName>,
    /// Objects that were noted before the list that is being read.
    before: BTreeSet<ObjectName>,
}

impl WatchUnreadable {
    /// For a watch that reads its objects as a `T`.
    pub(super) fn new<T>(objects: UnreadableObjects, target: &WatchTarget) -> Self {
        Self {
            objects,
            reader: std::any::type_name::<T>(),
            collection: object_of_path(&target.path),
            noted: BTreeSet::new(),
            before: BTreeSet::new(),
        }
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.before.append(&mut self.noted);
    }

    /// All of the list was read.
    pub(super) fn list_ended(&mut self) {
        for object in std::mem::take(&mut self.before) {
            if !self.noted.contains(&object) {
                self.objects.clear(self.reader, &object);
            }
        }
    }

    /// An object was read.
    pub(super) fn read<T>(&mut self, meta: impl FnOnce() -> Meta, read: Received<T>) -> T {
        if !read.left_out.is_empty() {
            self.note(&meta(), read.left_out);
        } else if !self.noted.is_empty() {
            self.gone(&meta());
        }
        read.value
    }

    /// An object can't be read at all, and is passed over.
    pub(super) fn unreadable(&mut self, meta: &Meta, problem: String) {
        let field = String::new();
        self.note(meta, vec![SkippedField { field, problem }]);
    }

    /// There is no such object any more.
    pub(super) fn gone(&mut self, meta: &Meta) {
        if !self.noted.is_empty() {
            let object = self.object(meta);
            if self.noted.remove(&object) {
                self.objects.clear(self.reader, &object);
            }
        }
    }

    fn note(&mut self, meta: &Meta, fields: Vec<SkippedField>) {
        let object = self.object(meta);
        self.objects
            .put(self.reader, &object, fields, Retention::UntilCleared);
        self.noted.insert(object);
    }

    fn object(&self, meta: &Meta) -> ObjectName {
        let namespace = match &*meta.namespace {
            "" => &self.collection.namespace,
            namespace => namespace,
        };
        ObjectName {
            resource: self.collection.resource.clone(),
            namespace: namespace.into(),
            name: meta.name.clone(),
        }
    }
}

impl Drop for WatchUnreadable {
    fn drop(&mut self) {
        for object in self.noted.iter().chain(&self.before) {
            self.objects.clear(self.reader, object);
        }
    }
}
