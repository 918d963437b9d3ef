//! What one watch can't read: told as long as the objects are so, and the watch lives.

use std::collections::BTreeSet;

use rubelet_yaml::{LeftOut, Received};

use super::{event::Meta, target::WatchTarget};
use crate::unread::{Lasting, ObjectName, Reader, UnreadObjects, named_by};

/// Notes what one watch can't read.
pub(super) struct UnreadOfWatch {
    objects: UnreadObjects,
    reader: Reader,
    /// The collection: an object without a name.
    collection: ObjectName,
    /// What was noted.
    noted: BTreeSet<ObjectName>,
    /// What was noted before the list that is being read.
    before: BTreeSet<ObjectName>,
}

impl UnreadOfWatch {
    /// For a watch that reads its objects as a `T`.
    pub(super) fn new<T>(objects: UnreadObjects, target: &WatchTarget) -> Self {
        Self {
            objects,
            reader: std::any::type_name::<T>(),
            collection: named_by(&target.path),
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
    pub(super) fn unread(&mut self, meta: &Meta, problem: String) {
        let field = String::new();
        self.note(meta, vec![LeftOut { field, problem }]);
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

    fn note(&mut self, meta: &Meta, fields: Vec<LeftOut>) {
        let object = self.object(meta);
        self.objects
            .put(self.reader, &object, fields, Lasting::Watched);
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

impl Drop for UnreadOfWatch {
    fn drop(&mut self) {
        for object in self.noted.iter().chain(&self.before) {
            self.objects.clear(self.reader, object);
        }
    }
}
